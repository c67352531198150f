import { isIP, isIPv4, isIPv6 } from 'node:net'
import { tryParseDuration } from '@thv/kernel/duration'

type Check = (text: string) => boolean

/** Formats that the real server checks; any other is ignored there too. Keys without dashes, as it looks them up. */
const FORMATS: Readonly<Record<string, Check>> = {
  datetime: (text) => RFC3339.test(text) && !Number.isNaN(Date.parse(text.replace(' ', 'T'))),
  date: (text) => /^\d{4}-\d{2}-\d{2}$/.test(text) && isDate(text),
  duration: (text) => tryParseDuration(text) !== undefined || SCALA_DURATION.test(text),
  uri: isRequestUri,
  email: (text) => /^(?:[^<>]*<)?[^\s@<>"(),:;[\]\\]+@[^\s@<>"(),:;[\]\\]+>?$/.test(text),
  hostname: (text) => text.length <= 255 && HOSTNAME.test(text),
  ipv4: (text) => isIPv4(text),
  ipv6: (text) => isIPv6(text) && !text.includes('%'),
  cidr: isCidr,
  mac: (text) => /^(?:[0-9a-f]{2}([:-])(?:[0-9a-f]{2}\1){4}[0-9a-f]{2}|(?:[0-9a-f]{4}\.){2}[0-9a-f]{4})$/i.test(text),
  uuid: (text) => /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i.test(text),
  uuid3: (text) => /^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i.test(text),
  uuid4: (text) => /^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$/i.test(text),
  uuid5: (text) => /^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$/i.test(text),
  hexcolor: (text) => /^#?(?:[0-9a-f]{3}|[0-9a-f]{6})$/i.test(text),
  ssn: (text) => /^\d{3}[- ]?\d{2}[- ]?\d{4}$/.test(text),
  byte: isBase64,
  password: () => true,
  bsonobjectid: (text) => /^[0-9a-f]{24}$/i.test(text),
  k8sshortname: (text) => text.length <= 63 && /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/.test(text),
  k8slongname: (text) => text.length <= 253 && /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/.test(text),
}

export function formatCheck(format: string | undefined): Check | undefined {
  const key = format?.replaceAll('-', '') ?? ''
  return Object.hasOwn(FORMATS, key) ? FORMATS[key] : undefined
}

const RFC3339 = /^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:[Zz]|[+-]\d{2}:?\d{2})$/
const SCALA_DURATION =
  /^[+-]?\d+\s*(?:d|day|days|h|hour|hours|m|min|minute|minutes|s|sec|second|seconds|ms|milli|millis|ns|nano|nanos|us|micro|micros|w|week|weeks)$/i
const HOSTNAME = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*\.?$/i

function isDate(text: string): boolean {
  const date = new Date(`${text}T00:00:00Z`)
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text)
}

/** Go's url.ParseRequestURI: absolute, or an absolute path. */
function isRequestUri(text: string): boolean {
  if (/[\p{Cc} ]/u.test(text)) return false
  if (text.startsWith('/')) return true
  const scheme = /^[A-Za-z][A-Za-z0-9+.-]*:(.*)$/.exec(text)
  if (!scheme) return false
  const authority = /^\/\/([^/?#]*)/.exec(scheme[1] ?? '')?.[1] ?? ''
  return !/%(?![0-9A-Fa-f]{2})/.test(text) && /^(?:[^@[\]]*@)?(?:\[[0-9A-Fa-f:.%]+\]|[^:[\]@]*)(?::\d*)?$/.test(authority)
}

function isCidr(text: string): boolean {
  const [address = '', bits = '', ...rest] = text.split('/')
  const version = isIP(address)
  return rest.length === 0 && version !== 0 && /^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128)
}

function isBase64(text: string): boolean {
  return /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(text) && text.length > 0
}
