"""Files that appear complete or not at all."""

import errno
import os
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def names_file(path):
    """Adds this file's name to an OSError of writing that names no file, such as that of a full disk."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from None


def partial(path):
    """(file, file to write first): the second replaces the first once it is complete. What is no ordinary file, such as a pipe, is
    written itself."""
    file = Path(os.path.realpath(path))  # the target of a link, not the link
    return file, file.with_name(f"{file.name}.partial") if file.is_file() or not file.exists() else file


@contextmanager
def complete(path):
    """Gives the name of a file to write. The file replaces the one that was there at the end, and is removed on an error."""
    file, part = partial(path)
    try:
        with names_file(path):
            if file.exists() and not os.access(file, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            yield part
            if part != file:
                part.replace(file)
    except BaseException:
        if part != file:
            part.unlink(missing_ok=True)
        raise
