const DNS_LABEL = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/
/** Words of paths, where the name of a registry stands. */
const RESERVED = ['v0', 'v0.1', 'x']

/** The problem of a registry's name, or nothing. */
export function registryNameProblem(name: string): string | undefined {
  if (RESERVED.includes(name)) return 'is reserved: v0, v0.1 and x are part of the paths of the API'
  return DNS_LABEL.test(name)
    ? undefined
    : 'must be a DNS label: at most 63 lower-case letters, digits and hyphens, with a letter or digit at both ends'
}
