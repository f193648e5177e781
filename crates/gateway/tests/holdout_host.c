// Runs bpf/holdout.h on the host: reads records of `struct holdout` and `struct connection` from standard
// input, writes the group of each as a byte. Compiled by holdout.rs.

#include <arpa/inet.h>
#include <stdio.h>

#define bpf_ntohl ntohl
#define bpf_ntohs ntohs
#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
#include "holdout.h"

struct record {
	struct holdout holdout;
	struct connection connection;
};

int main(void)
{
	struct record record;

	while (fread(&record, sizeof(record), 1, stdin) == 1)
		putchar((int)group_of(&record.connection, &record.holdout));
	return ferror(stdin) || fflush(stdout) ? 1 : 0;
}
