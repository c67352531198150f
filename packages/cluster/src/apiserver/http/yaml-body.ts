import type { Json } from '@thv/kube-schema/kind-schema'
import { parseDocument, type Tags, type YAMLParseError } from 'yaml'
import { boundsProblem, MAX_DEPTH } from '../../encoding/json-bounds.ts'
import { StatusError } from '../objects/status-error.ts'

/** A parser of YAML takes a second for this much and stops everyone else meanwhile. Manifests are far smaller. */
const MAX_YAML_BYTES = 256 << 10
const KNOWN_TAGS: ReadonlySet<string> = new Set(['map', 'seq', 'str', 'null', 'bool', 'int', 'float', 'merge'])

export class YamlError extends Error {}

/** The first document. `strict`: no key twice. Throws YamlError for what is not YAML, or not JSON in another form. */
export function parseYaml(bytes: Buffer, strict: boolean): Json {
  const json = asJson(bytes)
  if (json !== undefined) return json
  if (bytes.length > MAX_YAML_BYTES) {
    const message = `Request entity too large: limit is ${MAX_YAML_BYTES} for YAML; send JSON`
    throw new StatusError({ code: 413, reason: 'RequestEntityTooLarge', message })
  }
  try {
    const document = parseDocument(bytes.toString(), { version: '1.1', customTags: asGoReads, prettyErrors: true, logLevel: 'silent' })
    const wrong = document.errors.find(({ code }) => code !== 'MULTIPLE_DOCS' && code !== 'DUPLICATE_KEY')
    if (wrong !== undefined) throw new YamlError(problemText(wrong))
    const twice = strict ? document.errors.filter(({ code }) => code === 'DUPLICATE_KEY') : []
    if (twice.length > 0) throw new YamlError(`yaml: unmarshal errors:${twice.map((error) => duplicateText(error, bytes)).join('')}`)
    const text = JSON.stringify(document.toJS(), finite) ?? 'null'
    const excess = boundsProblem(Buffer.from(text))
    if (excess !== undefined) throw new YamlError(`yaml: ${excess}`)
    return JSON.parse(text) as Json
  } catch (error) {
    if (error instanceof YamlError) throw error
    // An alias bomb, or so deep that the stack was not enough.
    throw new YamlError(`yaml: ${error instanceof RangeError ? `nested more than ${MAX_DEPTH} levels deep` : String(error)}`)
  }
}

/** JSON is YAML, and what clients send under this name; only much faster to read. */
function asJson(bytes: Buffer): Json | undefined {
  if (bytes[0] !== 0x7b || boundsProblem(bytes) !== undefined) return undefined
  try {
    return JSON.parse(bytes.toString()) as Json
  } catch {
    return undefined // may still be YAML
  }
}

/** YAML 1.1 as Go's parser reads it: dates and times stay texts, and there are no other types than JSON's. */
function asGoReads(tags: Tags): Tags {
  return tags.filter(
    (tag) => typeof tag !== 'object' || (KNOWN_TAGS.has(tag.tag.replace('tag:yaml.org,2002:', '')) && tag.format !== 'TIME'),
  )
}

function finite(_name: string, value: unknown): unknown {
  if (typeof value === 'number' && !Number.isFinite(value))
    throw new YamlError(`json: unsupported value: ${value === -Infinity ? '-Inf' : Number.isNaN(value) ? 'NaN' : '+Inf'}`)
  return typeof value === 'bigint' ? Number(value) : value
}

const KEY = /^(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([^:\n]*))/

/** In the words of Go's parser. The error stands at the second key. */
function duplicateText({ linePos, pos }: YAMLParseError, bytes: Buffer): string {
  const [, double, single, plain] = KEY.exec(bytes.toString().slice(pos[0])) ?? []
  const name = (double ?? single ?? plain ?? '').trimEnd()
  return `\n  line ${linePos?.[0]?.line ?? 1}: key ${JSON.stringify(name)} already set in map`
}

function problemText({ message, linePos }: { message: string; linePos?: readonly { line: number }[] | undefined }): string {
  const [what = ''] = message.split(' at line ')
  return `yaml: line ${linePos?.[0]?.line ?? 1}: ${what}`
}
