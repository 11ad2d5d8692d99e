/* digest_cpu: of the static program alone. libcrypto looks at the CPU before
 * main(), by some thirty CPUID instructions, each of which a virtual machine
 * takes over: 30 us, 2 % of a start, and most starts hash nothing. So the link
 * (Makefile: --wrap) turns that call to here, and the first digest makes it. */
#include "base/digest.h"

void __wrap_OPENSSL_cpuid_setup(void);
void __real_OPENSSL_cpuid_setup(void); /* Only its first call does anything. */

void __wrap_OPENSSL_cpuid_setup(void)
{
}

void digest_look_at_cpu(void)
{
    __real_OPENSSL_cpuid_setup();
}
