# nextlabel serve with its numerical code compiled, for any processor of the kind, and run by nobody.
#   docker build -t nextlabel . && docker run -p 8000:8000 -v labels:/var/lib/nextlabel nextlabel
FROM python:3.11-slim

ENV NUMBA_CPU_NAME=generic
ENV NUMBA_CACHE_DIR=/var/cache/nextlabel
ENV NEXTLABEL_DB=/var/lib/nextlabel/labels.db
ENV NEXTLABEL_HOST=0.0.0.0
ENV HOME=/var/lib/nextlabel

WORKDIR /opt/nextlabel
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src ./src
RUN pip install --no-cache-dir -c constraints.txt ".[service,postgres,data,excel,learn]"

RUN mkdir -p /var/lib/nextlabel /var/cache/nextlabel && chown 65534:65534 /var/lib/nextlabel /var/cache/nextlabel
USER 65534:65534
RUN nextlabel warm

VOLUME /var/lib/nextlabel
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=10s --start-period=180s CMD python -c "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/healthz')"
CMD ["nextlabel", "serve"]
