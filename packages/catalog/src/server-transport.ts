import type { ObjectReader } from './object-reader.ts'
import { quote } from './problems.ts'
import type { DocumentRules } from './server-document.ts'
import { checkKeyValue, checkVariables } from './server-inputs.ts'
import { uriProblem } from './text.ts'

const LOCAL = ['stdio', 'streamable-http', 'sse']
const REMOTE = ['streamable-http', 'sse']

/** The transport of a package. `names` are what `{…}` in its URL may refer to: collected from the same package. */
export function checkLocalTransport(transport: ObjectReader, rules: DocumentRules, names: ReadonlySet<string>): void {
  const type = transport.text('type', { required: true, oneOf: LOCAL })
  if (type === 'stdio') {
    if (rules.semantic && transport.object['url'] !== undefined && transport.object['url'] !== '')
      transport.problem('url', 'stdio has no url')
    return
  }
  if (type === undefined || !LOCAL.includes(type)) return
  const url = checkUrl(transport, rules, type)
  checkHeaders(transport, rules)
  if (url !== undefined && rules.semantic)
    checkTemplate(transport, { url, names, declared: 'by an argument or environment variable of the package' })
}

export function checkRemote(remote: ObjectReader, rules: DocumentRules): void {
  const type = remote.text('type', { required: true, oneOf: REMOTE })
  const url = checkUrl(remote, rules, type)
  checkHeaders(remote, rules)
  const names = new Set(checkVariables(remote, rules))
  if (url === undefined) return
  if (rules.semantic) checkTemplate(remote, { url, names, declared: 'in variables' })
  if (rules.official) checkPublic(remote, url)
}

/** Identifiers in braces. A brace without its partner is no template. */
function templateNames(url: string): readonly string[] {
  return Array.from(url.matchAll(/\{([^{}]+)\}/g), (match) => match[1] ?? '')
}

function checkUrl(transport: ObjectReader, rules: DocumentRules, type: string | undefined): string | undefined {
  const begins = rules.schema.urlBegins
  return transport.text('url', {
    required: true,
    check: (url) => {
      if (begins === 'anything') return type === 'sse' ? uriProblem(url) : undefined // the older schemas say no more
      const pattern = begins === 'http' ? /^https?:\/\/[^\s]+$/ : /^(?:https?:\/\/[^\s]+|\{[^{}\s]+\}[^\s]*)$/
      return pattern.test(url) ? undefined : 'must begin with http:// or https:// and have no spaces'
    },
  })
}

function checkHeaders(transport: ObjectReader, rules: DocumentRules): void {
  transport.list('headers', {}, (header) => {
    checkKeyValue(header, rules)
  })
}

interface Template {
  readonly url: string
  readonly names: ReadonlySet<string>
  readonly declared: string
}

function checkTemplate(transport: ObjectReader, { url, names, declared }: Template): void {
  for (const name of new Set(templateNames(url))) {
    if (!names.has(name)) transport.problem('url', `{${name.slice(0, 60)}} is not declared ${declared}`)
  }
  if (!/^\{/.test(url) && !URL.canParse(filled(url))) transport.problem('url', `${quote(url)} is not a URL`)
}

function checkPublic(remote: ObjectReader, url: string): void {
  const parsed = URL.parse(filled(url))
  if (parsed === null) return
  if (parsed.protocol !== 'https:') remote.problem('url', 'must use https')
  const host = parsed.hostname.replace(/\.$/, '')
  const loopback = host === 'localhost' || host.endsWith('.localhost') || /^127\./.test(host) || host === '[::1]'
  if (loopback) remote.problem('url', 'must not point to the local machine')
}

/** A URL as it looks with its variables given: a digit is right in a host, a port and a path. */
function filled(url: string): string {
  return url.replace(/\{[^{}]+\}/g, '1')
}
