import type { DocumentProblem, JsonObject } from '@thv/catalog/catalog-entry'
import { guardJson, isJsonObject } from '@thv/catalog/json-guard'
import { type ObjectReader, readObject } from '@thv/catalog/object-reader'
import { createProblems, quote } from '@thv/catalog/problems'
import { checkServerDocument } from '@thv/catalog/server-document'
import { compactValue, membersAt, repeatedMember, startOfDocument, wholeValue } from '@thv/catalog/sources/format/json-scan'
import { readBody } from '@thv/http/server/read-body'
import { errorMessage } from '@thv/kernel/errors'
import { ApiError } from './api-error.ts'
import type { ApiRequest } from './route.ts'

export interface JsonBody {
  readonly value: unknown
  /** As it came, in one line: parsing loses digits of numbers and the order of some members. */
  text(): string
  /** The same of one member of the object. */
  memberText(name: string): string
}

/** 415, 413, 408, or 400 for what is no JSON. */
export async function readJson({ api, exchange }: ApiRequest): Promise<JsonBody> {
  const type = exchange.headers['content-type']
  if (typeof type !== 'string' || !/^\s*application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i.test(type))
    throw new ApiError(415, 'the body must be JSON: send it with Content-Type: application/json')
  const charset = /;\s*charset\s*=\s*"?([\w-]+)/i.exec(type)?.[1]
  if (charset !== undefined && !/^(?:utf-?8|us-ascii)$/i.test(charset)) throw new ApiError(415, 'the body must be UTF-8')
  const bytes = await readBody(exchange, api.http.maxBodyBytes)
  const value = parse(decode(bytes))
  refuseRepeated(bytes)
  return {
    value,
    text: () => compactValue(bytes, wholeValue(bytes)).toString(),
    memberText(name) {
      for (const member of membersAt(bytes, startOfDocument(bytes))) if (member.name === name) return compactValue(bytes, member).toString()
      throw new RangeError(`the body has no member ${name}`)
    },
  }
}

/** An object of these members, read by `read`; all that is wrong with it as one 400. */
export function readMembers<T>(value: unknown, names: readonly string[], read: (reader: ObjectReader) => T): T {
  const problems = createProblems()
  if (!guardJson(value, problems)) throw badBody(problems.list)
  if (!isJsonObject(value)) throw badBody([{ pointer: '', message: 'must be an object' }])
  const reader = readObject(value, '', problems)
  for (const name of Object.keys(value)) {
    if (!names.includes(name)) reader.problem(name, `is not known here; known are ${names.join(', ')}`)
  }
  const result = read(reader)
  if (problems.list.length > 0) throw badBody(problems.list)
  return result
}

export function badBody(problems: readonly DocumentProblem[]): ApiError {
  const [first] = problems
  const place = first === undefined || first.pointer === '' ? 'the body' : first.pointer
  const more = problems.length > 1 ? ` (and ${problems.length - 1} more)` : ''
  return new ApiError(400, `invalid request body: ${place} ${first?.message ?? 'is wrong'}${more}`, { problems })
}

export interface ServerDocument {
  readonly name: string
  readonly version: string
  readonly document: JsonObject
}

/** A document that may be published, or 422 with all that is wrong. `at` is where it stands in the body. */
export function readDocument(value: unknown, at = ''): ServerDocument {
  const check = checkServerDocument(value, { level: 'semantic' })
  if (check.ok) return { name: String(check.document['name']), version: String(check.document['version']), document: check.document }
  const problems = check.problems.map(({ pointer, message }) => ({ pointer: `${at}${pointer}`, message }))
  const count = problems.length === 1 ? 'a problem' : `${problems.length} problems`
  throw new ApiError(422, `the server document has ${count}: ${problems[0]?.pointer || '(document)'} ${problems[0]?.message}`, { problems })
}

function decode(bytes: Buffer): string {
  if (bytes.length === 0) throw new ApiError(400, 'invalid request body: it is empty')
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch (cause) {
    throw new ApiError(400, 'invalid request body: it is not UTF-8', { cause })
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new ApiError(400, 'invalid request body: it is not JSON', { cause })
  }
}

/** Text that readers could interpret differently is rejected. */
function refuseRepeated(bytes: Buffer): void {
  let name: string | undefined
  try {
    name = repeatedMember(bytes)
  } catch (cause) {
    throw new ApiError(400, `invalid request body: ${errorMessage(cause)}`, { cause })
  }
  if (name !== undefined) throw new ApiError(400, `invalid request body: a member is given twice in one object: ${quote(name)}`)
}
