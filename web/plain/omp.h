/* The page has one thread: OpenMP's questions, answered. */
#ifndef FINETTI_WEB_OMP_H
#define FINETTI_WEB_OMP_H

static inline int omp_get_thread_num(void)
{
    return 0;
}
static inline int omp_get_num_threads(void)
{
    return 1;
}
static inline int omp_get_max_threads(void)
{
    return 1;
}
static inline int omp_get_num_procs(void)
{
    return 1;
}
static inline int omp_in_parallel(void)
{
    return 0;
}
static inline void omp_set_num_threads(int threads)
{
    (void)threads;
}

#endif
