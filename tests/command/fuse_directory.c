/* A directory, served through FUSE: just what a database needs of a file system.
 * SPDX-License-Identifier: MIT */
#include "command/fuse_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

enum { NAMES_MAX = 64, FIRST = FUSE_ROOT_ID + 1, WRITE_MAX = 128 << 10 };

struct served {
    int device, directory;
    char *name[NAMES_MAX]; /* of node FIRST + i */
};

/* ---- answers -------------------------------------------------------------------------------------- */

static void answer(const struct served *s, const struct fuse_in_header *in, int error,
                   const void *data, size_t length)
{
    struct fuse_out_header out = { .len = (uint32_t)(sizeof(out) + (error ? 0 : length)),
                                   .error = -error,
                                   .unique = in->unique };
    struct iovec parts[2] = { { &out, sizeof(out) }, { (void *)data, error ? 0 : length } };
    ssize_t n = writev(s->device, parts, 2);

    (void)n; /* the process that asked may be gone */
}

static void fill(struct fuse_attr *out, const struct stat *st, uint64_t node)
{
    *out = (struct fuse_attr){ .ino = node,
                               .size = (uint64_t)st->st_size,
                               .blocks = (uint64_t)st->st_blocks,
                               .mtime = (uint64_t)st->st_mtim.tv_sec,
                               .mtimensec = (uint32_t)st->st_mtim.tv_nsec,
                               .mode = st->st_mode,
                               .nlink = 1,
                               .blksize = 4096 };
}

static int look(struct stat *st, const struct served *s, uint64_t node)
{
    int rc = node == FUSE_ROOT_ID ? fstat(s->directory, st)
                                  : fstatat(s->directory, s->name[node - FIRST], st, 0);

    return rc < 0 ? errno : 0;
}

/* The node of a name, which gets one if it has none. */
static uint64_t node_of(struct served *s, const char *name)
{
    int i = 0;

    while (i < NAMES_MAX && s->name[i] && strcmp(s->name[i], name))
        i++;
    if (i == NAMES_MAX)
        abort();
    if (!s->name[i])
        s->name[i] = strdup(name);
    return (uint64_t)(FIRST + i);
}

/* ---- requests ------------------------------------------------------------------------------------- */

static int entry(struct fuse_entry_out *out, struct served *s, const char *name)
{
    uint64_t node = node_of(s, name);
    struct stat st;
    int error = look(&st, s, node);

    *out = (struct fuse_entry_out){ .nodeid = node };
    if (!error)
        fill(&out->attr, &st, node);
    return error;
}

static void create(struct served *s, const struct fuse_in_header *in, const char *body)
{
    const struct fuse_create_in *wish = (const void *)body;
    const char *name = body + sizeof(*wish);
    struct {
        struct fuse_entry_out entry;
        struct fuse_open_out open;
    } out = { 0 };
    int fd =
            openat(s->directory, name, (int)wish->flags | O_RDWR | O_CREAT | O_CLOEXEC, wish->mode),
        error = fd < 0 ? errno : entry(&out.entry, s, name);

    out.open.fh = (uint64_t)fd;
    answer(s, in, error, &out, sizeof(out));
}

static void open_node(struct served *s, const struct fuse_in_header *in, const char *body)
{
    const struct fuse_open_in *wish = (const void *)body;
    int fd = openat(s->directory, in->nodeid == FUSE_ROOT_ID ? "." : s->name[in->nodeid - FIRST],
                    (int)wish->flags & ~(O_CREAT | O_EXCL | O_NOFOLLOW));
    struct fuse_open_out out = { .fh = (uint64_t)fd };

    answer(s, in, fd < 0 ? errno : 0, &out, sizeof(out));
}

static void set_attributes(struct served *s, const struct fuse_in_header *in, const char *body)
{
    const struct fuse_setattr_in *wish = (const void *)body;
    struct fuse_attr_out out = { 0 };
    struct stat st;
    int error = 0, fd;

    if (wish->valid & FATTR_SIZE) {
        fd = openat(s->directory, s->name[in->nodeid - FIRST], O_WRONLY | O_CLOEXEC);
        if (fd < 0 || ftruncate(fd, (off_t)wish->size) < 0)
            error = errno;
        if (fd >= 0)
            close(fd);
    }
    if (!error)
        error = look(&st, s, in->nodeid);
    if (!error)
        fill(&out.attr, &st, in->nodeid);
    answer(s, in, error, &out, sizeof(out));
}

static void read_some(struct served *s, const struct fuse_in_header *in, const char *body)
{
    static char buffer[WRITE_MAX];
    const struct fuse_read_in *wish = (const void *)body;
    size_t size = wish->size < sizeof(buffer) ? wish->size : sizeof(buffer);
    ssize_t n = pread((int)wish->fh, buffer, size, (off_t)wish->offset);

    answer(s, in, n < 0 ? errno : 0, buffer, n < 0 ? 0 : (size_t)n);
}

static void write_some(struct served *s, const struct fuse_in_header *in, const char *body)
{
    const struct fuse_write_in *wish = (const void *)body;
    ssize_t n = pwrite((int)wish->fh, body + sizeof(*wish), wish->size, (off_t)wish->offset);
    struct fuse_write_out out = { .size = n < 0 ? 0 : (uint32_t)n };

    answer(s, in, n < 0 ? errno : 0, &out, sizeof(out));
}

static void tell_space(struct served *s, const struct fuse_in_header *in)
{
    struct fuse_statfs_out out = { .st = { .blocks = 1 << 20,
                                           .bfree = 1 << 20,
                                           .bavail = 1 << 20,
                                           .bsize = 4096,
                                           .frsize = 4096,
                                           .namelen = 255 } };

    answer(s, in, 0, &out, sizeof(out));
}

static void greet(struct served *s, const struct fuse_in_header *in, const char *body)
{
    const struct fuse_init_in *wish = (const void *)body;
    struct fuse_init_out out = { .major = FUSE_KERNEL_VERSION,
                                 .minor = FUSE_KERNEL_MINOR_VERSION,
                                 .max_readahead = wish->max_readahead,
                                 .max_write = WRITE_MAX };

    answer(s, in, 0, &out, sizeof(out));
}

static void serve_one(struct served *s, const struct fuse_in_header *in, const char *body)
{
    struct fuse_entry_out found;
    struct fuse_attr_out attributes = { 0 };
    struct stat st;
    int error;

    switch (in->opcode) {
    case FUSE_INIT:
        greet(s, in, body);
        break;
    case FUSE_LOOKUP:
        error = entry(&found, s, body);
        answer(s, in, error, &found, sizeof(found));
        break;
    case FUSE_GETATTR:
        error = look(&st, s, in->nodeid);
        if (!error)
            fill(&attributes.attr, &st, in->nodeid);
        answer(s, in, error, &attributes, sizeof(attributes));
        break;
    case FUSE_SETATTR:
        set_attributes(s, in, body);
        break;
    case FUSE_CREATE:
        create(s, in, body);
        break;
    case FUSE_OPEN:
    case FUSE_OPENDIR:
        open_node(s, in, body);
        break;
    case FUSE_READ:
        read_some(s, in, body);
        break;
    case FUSE_WRITE:
        write_some(s, in, body);
        break;
    case FUSE_FSYNC:
    case FUSE_FSYNCDIR:
        error = fsync((int)((const struct fuse_fsync_in *)body)->fh) < 0 ? errno : 0;
        answer(s, in, error, NULL, 0);
        break;
    case FUSE_RELEASE:
    case FUSE_RELEASEDIR:
        close((int)((const struct fuse_release_in *)body)->fh);
        answer(s, in, 0, NULL, 0);
        break;
    case FUSE_UNLINK:
        error = unlinkat(s->directory, body, 0) < 0 ? errno : 0;
        answer(s, in, error, NULL, 0);
        break;
    case FUSE_STATFS:
        tell_space(s, in);
        break;
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
        break; /* wants no answer */
    case FUSE_FLUSH:
        answer(s, in, 0, NULL, 0);
        break;
    default:
        answer(s, in, ENOSYS, NULL, 0);
        break;
    }
}

static void *serve(void *arg)
{
    static char request[WRITE_MAX + 4096] __attribute__((aligned(8)));
    struct served *s = arg;

    for (;;) {
        ssize_t n = read(s->device, request, sizeof(request));
        if (n < 0 && (errno == EINTR || errno == ENOENT || errno == EAGAIN))
            continue;
        if (n < (ssize_t)sizeof(struct fuse_in_header))
            return NULL; /* it is not mounted any more */
        serve_one(s, (const void *)request, request + sizeof(struct fuse_in_header));
    }
}

bool fuse_directory_mount(const char *from, const char *to)
{
    static struct served s;
    char options[100];
    pthread_t thread;

    s.device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    s.directory = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s.device < 0 || s.directory < 0 || unshare(CLONE_NEWNS) < 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return false;
    snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=%d,group_id=%d", s.device,
             (int)getuid(), (int)getgid());
    return mount("weir-test", to, "fuse", MS_NOSUID | MS_NODEV, options) == 0 &&
           pthread_create(&thread, NULL, serve, &s) == 0;
}
