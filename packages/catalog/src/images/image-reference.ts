/** An image reference with its defaults filled in. */
export interface ImageReference {
  /** Registry and repository, with the tag where there is one or neither tag nor digest. */
  readonly tagged: string
  readonly digest: string | undefined
}

const MAX_LENGTH = 4_096

/** `nginx` is `docker.io/library/nginx:latest`; a colon before the last slash is that of a port. */
export function parseImageReference(text: string): ImageReference | undefined {
  if (text === '' || text.length > MAX_LENGTH || /\s/.test(text)) return undefined
  const at = text.indexOf('@')
  const digest = at < 0 ? undefined : text.slice(at + 1)
  const named = at < 0 ? text : text.slice(0, at)
  const colon = named.indexOf(':', named.lastIndexOf('/') + 1)
  const repository = colon < 0 ? named : named.slice(0, colon)
  const tag = colon < 0 ? (digest === undefined ? 'latest' : '') : named.slice(colon + 1)
  if (repository === '') return undefined
  const full = withRegistry(repository)
  return { tagged: tag === '' ? full : `${full}:${tag}`, digest }
}

function withRegistry(repository: string): string {
  const slash = repository.indexOf('/')
  const first = slash < 0 ? '' : repository.slice(0, slash)
  if (first.includes('.') || first.includes(':') || first === 'localhost') {
    return first === 'index.docker.io' ? `docker.io${repository.slice(slash)}` : repository
  }
  return `docker.io/${slash < 0 ? 'library/' : ''}${repository}`
}

/** Digests count only where both sides have one; without a tag they must be there and equal. */
export function isSameImage(a: ImageReference, b: ImageReference): boolean {
  if (a.tagged !== b.tagged) return false
  return a.digest === b.digest || ((a.digest === undefined || b.digest === undefined) && /:[^/]*$/.test(a.tagged))
}
