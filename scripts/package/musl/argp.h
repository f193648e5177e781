/* The types of <argp.h> that elfutils names in files beside libelf, and that musl lacks. No program is built
   from these files. */
#ifndef ARGP_H
#define ARGP_H

#include <errno.h>
#include <stdio.h>

#define ARGP_ERR_UNKNOWN E2BIG
#define ARGP_HELP_EXIT_ERR 0x100
#define ARGP_HELP_SEE 0x04
#define OPTION_ARG_OPTIONAL 0x1
#define OPTION_DOC 0x8

typedef int error_t;

struct argp_state {
    const char *name;
};
struct argp_option {
    const char *name;
    int key;
    const char *arg;
    int flags;
    const char *doc;
    int group;
};
struct argp {
    const struct argp_option *options;
    error_t (*parser)(int key, char *arg, struct argp_state *state);
    const char *args_doc;
    const char *doc;
    const struct argp *children;
    char *(*help_filter)(int key, const char *text, void *input);
    const char *argp_domain;
};

void argp_help(const struct argp *argp, FILE *stream, unsigned flags, char *name);

#endif
