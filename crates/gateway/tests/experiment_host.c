// Runs bpf/experiment.h on the host: reads records of `struct experiment` and `struct address` from standard
// input, writes for each as a byte whether the device is untouched. Compiled by experiment.rs.

#include <arpa/inet.h>
#include <stdio.h>

#define bpf_ntohl ntohl
#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
#include "experiment.h"

struct record {
	struct experiment experiment;
	struct address address;
};

int main(void)
{
	struct record record;

	while (fread(&record, sizeof(record), 1, stdin) == 1)
		putchar(is_untouched(&record.address, &record.experiment));
	return ferror(stdin) || fflush(stdout) ? 1 : 0;
}
