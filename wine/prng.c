/* Go programs take their random numbers from ProcessPrng of bcryptprimitives.dll, which Wine 8.0 lacks. */
#include <windows.h>
#include <ntsecapi.h>

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE buffer, SIZE_T size) { return RtlGenRandom(buffer, (ULONG)size); }
