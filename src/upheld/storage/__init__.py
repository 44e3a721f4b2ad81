"""Files and folders that are whole or not there, databases that several processes share, and where upheld keeps what it need
not make twice."""

from upheld.storage.databases import use_write_ahead_log
from upheld.storage.files import whole_file
from upheld.storage.folders import built_once, cache_folder

__all__ = ["built_once", "cache_folder", "use_write_ahead_log", "whole_file"]
