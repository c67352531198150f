/*
 * Hostnames of listeners and routes as the Gateway API intersects them: `*.x.y` matches names with at least one more label before
 * `.x.y`, and no hostname matches all. All are lower case.
 */

/** The narrower of both, or undefined if no host fits both. '' means that neither names one. */
export function intersectHostnames(listener: string | undefined, route: string | undefined): string | undefined {
  if (listener === undefined) return route ?? ''
  if (route === undefined || listener === route) return listener
  if (isWildcard(listener))
    return matchesWildcard(route, listener) ? route : isWildcard(route) && matchesWildcard(listener, route) ? listener : undefined
  return isWildcard(route) && matchesWildcard(listener, route) ? listener : undefined
}

export function isWildcard(hostname: string): boolean {
  return hostname.startsWith('*.')
}

/** Whether every host of `hostname`, itself perhaps a wildcard, has at least one more label than the wildcard's suffix. */
export function matchesWildcard(hostname: string, wildcard: string): boolean {
  const suffix = wildcard.slice(1)
  return hostname.endsWith(suffix) && hostname.length > suffix.length
}

const NAME = /^(?=.{1,253}$)[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?)*$/

/** A host that a URL can name. */
export function isConcreteHostname(hostname: string): boolean {
  return NAME.test(hostname)
}
