/**
 * Which paths need no token. A path is public if it is one of these or lies below one; "/" makes all public. What a path hides
 * behind escapes or dots never makes it public: it must be so as written and as cleaned.
 */
export function createPublicPaths(paths: readonly string[]): (path: string) => boolean {
  const roots = paths.map(cleanPath)
  const covers = (path: string) => roots.some((root) => root === '/' || path === root || path.startsWith(`${root}/`))
  return (path) => covers(path) && !/%2[ef]/i.test(path) && covers(cleanPath(path))
}

/** Rooted, without empty, "." and ".." segments. */
export function cleanPath(path: string): string {
  const clean: string[] = []
  for (const segment of path.split('/')) {
    if (segment === '..') clean.pop()
    else if (segment !== '' && segment !== '.') clean.push(segment)
  }
  return `/${clean.join('/')}`
}
