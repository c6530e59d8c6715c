"""Recorded labels as people have them: files read, counted and reported, and the rates that their times speak for."""
