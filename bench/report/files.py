"""Files that appear only when they are complete."""
import os
import tempfile


def write(path, content):
    """At `path` in one step: a reader sees the old file or the new one."""
    folder = os.path.dirname(os.path.abspath(path))
    handle, temporary = tempfile.mkstemp(prefix=os.path.basename(path) + ".", suffix=".next", dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            mask = os.umask(0)
            os.umask(mask)
            os.fchmod(file.fileno(), 0o666 & ~mask)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
