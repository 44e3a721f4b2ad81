"""Files and folders that are whole or not there, and where upheld keeps what it need not make twice."""

from upheld.storage.files import whole_file
from upheld.storage.folders import built_once, cache_folder

__all__ = ["built_once", "cache_folder", "whole_file"]
