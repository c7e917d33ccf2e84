import Glibc

public let EACCES = Glibc.EACCES
public let EAGAIN = Glibc.EAGAIN
public let EBADF = Glibc.EBADF
public let EBADMSG = Glibc.EBADMSG
public let EDQUOT = Glibc.EDQUOT
public let EEXIST = Glibc.EEXIST
public let EFBIG = Glibc.EFBIG
public let EINTR = Glibc.EINTR
public let EINVAL = Glibc.EINVAL
public let EIO = Glibc.EIO
public let EISDIR = Glibc.EISDIR
public let ELOOP = Glibc.ELOOP
public let EMFILE = Glibc.EMFILE
public let ENAMETOOLONG = Glibc.ENAMETOOLONG
public let ENFILE = Glibc.ENFILE
public let ENODATA = Glibc.ENODATA
public let ENOENT = Glibc.ENOENT
public let ENOMEM = Glibc.ENOMEM
public let ENOSPC = Glibc.ENOSPC
public let ENOSYS = Glibc.ENOSYS
public let ENOTDIR = Glibc.ENOTDIR
public let ENOTEMPTY = Glibc.ENOTEMPTY
public let ENXIO = Glibc.ENXIO
public let EOPNOTSUPP = Glibc.EOPNOTSUPP
public let EPERM = Glibc.EPERM
public let EPIPE = Glibc.EPIPE
public let EROFS = Glibc.EROFS
public let ESRCH = Glibc.ESRCH
public let ESTALE = Glibc.ESTALE
public let EWOULDBLOCK = Glibc.EWOULDBLOCK
public let EXDEV = Glibc.EXDEV
/// On Linux, the number of EOPNOTSUPP.
public let ENOTSUP: Int32 = 45
