/* Makes processes as fast as it can, and keeps the number of those that were alive at once in the file `count`. */
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

int main(void) {
  int fd = open("count", O_RDWR | O_CREAT, 0644);
  if (fd < 0 || ftruncate(fd, 8) < 0) return 1;
  volatile uint64_t *count = mmap(0, 8, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  for (int i = 0; i < 20000; i++) {
    pid_t pid = fork();
    if (pid == 0) for (;;) pause();
    if (pid > 0) ++*count;
  }
  for (;;) pause();
}
