"""Files read batch by batch, for data larger than memory."""

from .paths import FileSource, file_source
