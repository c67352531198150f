import { createHash, X509Certificate } from 'node:crypto'
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls'
import { errorMessage } from '@thv/kernel/errors'
import { httpError } from '../http-errors.ts'

/** Certificates that a backend's chain may end in, beside those of the system. */
export interface CaBundle {
  /** The same for the same certificates, whatever stands between them. */
  readonly id: string
  readonly certificates: readonly string[]
  /** Subjects of certificates that have run out: worth a warning, no error. */
  readonly expired: readonly string[]
}

export interface CaBundleOptions {
  /** For messages: a path, or namespace/name of a ConfigMap. */
  readonly name: string
  readonly now?: number
}

const MAX_BYTES = 1 << 20
const MAX_CERTIFICATES = 512

/** Reads every certificate; throws `ca_bundle_invalid`, which names the bundle, the entry and its line, and never quotes the content. */
export function parseCaBundle(pem: string, { name, now = Date.now() }: CaBundleOptions): CaBundle {
  const fail = (problem: string) => httpError('ca_bundle_invalid', `CA bundle ${name}: ${problem}`, { details: { bundle: name } })
  if (Buffer.byteLength(pem) > MAX_BYTES) throw fail(`larger than ${MAX_BYTES} bytes`)
  const found: X509Certificate[] = []
  for (const { label, line, text } of pemBlocks(pem)) {
    const place = `entry ${found.length + 1} (line ${line})`
    if (text === undefined) throw fail(`${place} has no matching END line`)
    if (label.endsWith('PRIVATE KEY')) throw fail(`${place} is a private key, which does not belong in a CA bundle: remove and replace it`)
    if (label !== 'CERTIFICATE') throw fail(`${place} is not a certificate but ${JSON.stringify(label.slice(0, 40))}`)
    if (found.length >= MAX_CERTIFICATES) throw fail(`more than ${MAX_CERTIFICATES} certificates`)
    found.push(parseCertificate(text, (problem) => fail(`${place} cannot be parsed: ${problem}`)))
  }
  if (found.length === 0) throw fail('holds no certificate; PEM with BEGIN CERTIFICATE lines is expected')
  const id = createHash('sha256')
  for (const { raw } of found) id.update(raw)
  return {
    id: id.digest('base64url'),
    certificates: found.map((certificate) => certificate.toString()),
    expired: found.filter((certificate) => certificate.validToDate.getTime() < now).map((certificate) => subjectOf(certificate)),
  }
}

interface PemBlock {
  readonly label: string
  readonly line: number
  /** Undefined when it does not end. */
  readonly text: string | undefined
}

/** By lines, so that a hostile bundle takes no more time than a good one. Text between the blocks is comment. */
function* pemBlocks(pem: string): Generator<PemBlock> {
  let open: { label: string; line: number; lines: string[] } | undefined
  for (const [i, raw] of pem.split('\n').entries()) {
    const text = raw.trim()
    const begin = /^-----BEGIN (.*)-----$/.exec(text)?.[1]
    if (begin !== undefined) {
      if (open) yield { ...open, text: undefined }
      open = { label: begin, line: i + 1, lines: [] }
    }
    open?.lines.push(text)
    if (open && text === `-----END ${open.label}-----`) {
      yield { ...open, text: open.lines.join('\n') }
      open = undefined
    }
  }
  if (open) yield { ...open, text: undefined }
}

const contexts = new WeakMap<CaBundle, SecureContext>()

/** System roots and the bundle, made once per bundle: reading all roots takes tens of milliseconds. */
export function secureContextOf(bundle: CaBundle): SecureContext {
  let context = contexts.get(bundle)
  if (context === undefined) {
    context = createSecureContext({ ca: [...getCACertificates('default'), ...bundle.certificates], minVersion: 'TLSv1.2' })
    contexts.set(bundle, context)
  }
  return context
}

function parseCertificate(text: string, fail: (problem: string) => Error): X509Certificate {
  try {
    return new X509Certificate(text)
  } catch (error) {
    throw fail(errorMessage(error))
  }
}

function subjectOf({ subject }: X509Certificate): string {
  return subject.replaceAll('\n', ', ')
}
