export interface UrlRules {
  /** Plain HTTP beyond localhost is fine. */
  readonly allowHttp?: boolean
  /** The field that allows it, for the message. */
  readonly instead?: string
  /** No query, fragment or trailing slash: others compare the text. */
  readonly isIssuer?: boolean
}

/** The problem of a URL that the schema accepts. Never quotes it: it may hold a password. Pure. */
export function urlProblems(
  field: string,
  url: string | undefined,
  { allowHttp = false, instead, isIssuer = false }: UrlRules = {},
): string[] {
  if (url === undefined) return []
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  if (parsed === undefined || !/^https?:$/.test(parsed.protocol) || parsed.hostname === '') {
    return [`${field} is not an http or https URL with a host: correct it`]
  }
  const problems: string[] = []
  if (parsed.username !== '' || parsed.password !== '') {
    problems.push(`${field} holds a user name or password, which everybody who can read this object would see: put it into a Secret`)
  }
  if (parsed.protocol === 'http:' && !allowHttp && !isLoopback(parsed.hostname)) {
    problems.push(`${field} must begin with https://${instead === undefined ? '' : `, or set ${instead} for a test`}`)
  }
  if (isIssuer && (parsed.search !== '' || parsed.hash !== '' || /[?#]/.test(url) || url.endsWith('/'))) {
    problems.push(`${field} must have no query, no fragment and no trailing slash, because tokens carry it letter by letter`)
  }
  return problems
}

/** RFC 8252: what never leaves the machine. */
export function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d{1,3}){3}$/.test(hostname)
}

/** `host:port` as Redis clients take it. */
export function addressProblems(field: string, address: string | undefined): string[] {
  if (address === undefined) return []
  const port = /^(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?):(\d{1,5})$/.exec(address)?.[2]
  return port !== undefined && Number(port) >= 1 && Number(port) <= 65_535
    ? []
    : [`${field} must be host:port, such as redis.team.svc:6379`]
}
