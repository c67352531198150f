import { skipSpace, stringEnd, valueEnd } from './json-scan.ts'

/** Where a member stands in a JSON text: its key from quote to quote, and from the first to behind the last character of its value. */
export interface MemberSpan {
  readonly keyStart: number
  readonly keyEnd: number
  readonly start: number
  readonly end: number
}

/**
 * Sets (or, with undefined, removes) one member of a JSON text and leaves all others as they are written. Numbers that do not fit
 * into a double, member order and escapes survive, which a parse and a new serialisation cannot promise.
 *
 * The text must be valid JSON with an object at its root, `json` a JSON value. Objects missing on the way are made; a way through
 * something that is not an object is a RangeError. Of a repeated name the last one counts, as with JSON.parse; a removal takes all.
 */
export function spliceMember(text: string, path: readonly string[], json: string | undefined): string {
  const span = findMember(text, path)
  if (span === undefined) return json === undefined ? text : insert(text, path, json)
  if (json === undefined) return remove(text, path)
  return text.slice(0, span.start) + json + text.slice(span.end)
}

/** The last member of that name, or undefined if it, or something on the way to it, is not there. */
export function findMember(text: string, path: readonly string[]): MemberSpan | undefined {
  let span: MemberSpan | undefined
  let object = skipSpace(text, 0)
  for (const name of path) {
    span = text[object] === '{' ? lastMember(text, object, name) : undefined
    if (span === undefined) return undefined
    object = span.start
  }
  return span
}

/** As `findMember` for several members of one object, which begins at `object`, in one pass: the last of each name. */
export function findMembers<const N extends readonly string[]>(
  text: string,
  object: number,
  names: N,
): { readonly [I in keyof N]: MemberSpan | undefined } {
  const found: (MemberSpan | undefined)[] = names.map(() => undefined)
  if (text[object] === '{')
    for (let member = memberAt(text, object + 1); member; member = memberAfter(text, member)) {
      const at = names.indexOf(keyOf(text, member))
      if (at >= 0) found[at] = member
    }
  return found as { readonly [I in keyof N]: MemberSpan | undefined }
}

/** Puts a member before all others of the object that begins at `object`. */
export function insertFirst(text: string, object: number, member: string): string {
  const isEmpty = text[skipSpace(text, object + 1)] === '}'
  return `${text.slice(0, object + 1)}${member}${isEmpty ? '' : ','}${text.slice(object + 1)}`
}

function lastMember(text: string, object: number, name: string): MemberSpan | undefined {
  let found: MemberSpan | undefined
  for (let member = memberAt(text, object + 1); member; member = memberAfter(text, member)) {
    if (keyOf(text, member) === name) found = member
  }
  return found
}

function memberAfter(text: string, { end }: MemberSpan): MemberSpan | undefined {
  const i = skipSpace(text, end)
  return text[i] === ',' ? memberAt(text, i + 1) : undefined
}

function memberAt(text: string, index: number): MemberSpan | undefined {
  const keyStart = skipSpace(text, index)
  if (text[keyStart] !== '"') return undefined
  const keyEnd = stringEnd(text, keyStart)
  const start = skipSpace(text, skipSpace(text, keyEnd + 1) + 1)
  return { keyStart, keyEnd, start, end: valueEnd(text, start) }
}

/** A key may be written with escapes: `"\u0069d"` is `id` too. */
function keyOf(text: string, { keyStart, keyEnd }: MemberSpan): string {
  const raw = text.slice(keyStart + 1, keyEnd)
  return raw.includes('\\') ? JSON.parse(`"${raw}"`) : raw
}

/** In one pass, however often the name is repeated; only the white space between the other members of that object is lost. */
function remove(text: string, path: readonly string[]): string {
  const object = path.length === 1 ? skipSpace(text, 0) : findMember(text, path.slice(0, -1))?.start
  if (object === undefined) return text
  const kept: string[] = []
  for (let member = memberAt(text, object + 1); member; member = memberAfter(text, member)) {
    if (keyOf(text, member) !== path.at(-1)) kept.push(text.slice(member.keyStart, member.end))
  }
  return `${text.slice(0, object)}{${kept.join(',')}}${text.slice(valueEnd(text, object))}`
}

function insert(text: string, path: readonly string[], json: string): string {
  let depth = path.length - 1
  let parent: number | undefined
  for (; depth >= 0; depth--) {
    parent = depth === 0 ? skipSpace(text, 0) : findMember(text, path.slice(0, depth))?.start
    if (parent !== undefined) break
  }
  if (parent === undefined || text[parent] !== '{') throw new RangeError(`no object to put ${path.join('.')} into`)
  const value = path.slice(depth + 1).reduceRight((inner, name) => `{${JSON.stringify(name)}:${inner}}`, json)
  const member = `${JSON.stringify(path[depth])}:${value}`
  return insertFirst(text, parent, member)
}
