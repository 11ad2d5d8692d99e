/* bench_mpi: as bench_ddp's all_reduce, for Open MPI: MPI_Allreduce of COUNT
 * floats, CALLS times. Rank 0 prints "least median" in microseconds. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define WARM_UP 3

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
    int count = argc == 3 ? (int)strtol(argv[1], NULL, 10) : 0;
    int calls = argc == 3 ? (int)strtol(argv[2], NULL, 10) : 0, rank;
    int row = count <= 65536 ? 200 : 1, n = calls / row;
    float *a = calloc((size_t)count + 1, sizeof *a);
    double *us = calloc((size_t)n + WARM_UP + 1, sizeof *us);

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!a || !us || n < 1)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int i = 0; i < count; i++)
        a[i] = 0;
    for (int i = 0; i < n + WARM_UP; i++) {
        double began;

        MPI_Barrier(MPI_COMM_WORLD);
        began = MPI_Wtime();
        for (int k = 0; k < row; k++)
            MPI_Allreduce(MPI_IN_PLACE, a, count, MPI_FLOAT, MPI_SUM,
                          MPI_COMM_WORLD);
        us[i] = (MPI_Wtime() - began) / row * 1e6;
    }
    qsort(us + WARM_UP, (size_t)n, sizeof *us, by_value);
    if (rank == 0)
        printf("%.2f %.2f\n", us[WARM_UP], us[WARM_UP + n / 2]);
    MPI_Finalize();
    free(a);
    free(us);
    return 0;
}
