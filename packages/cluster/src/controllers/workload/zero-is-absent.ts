/** The server leaves out what is zero or empty; so that a status that says the same also looks the same, so do we. */
export function zeroIsAbsent<T extends object>(status: T): T {
  const kept = Object.entries(status).filter(
    ([, value]) => value !== undefined && value !== 0 && value !== '' && !(Array.isArray(value) && value.length === 0),
  )
  return Object.fromEntries(kept) as T
}
