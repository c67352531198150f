import type { DocumentProblem, Json, JsonObject } from '../../catalog-entry.ts'
import { guardJson } from '../../json-guard.ts'
import { createProblems } from '../../problems.ts'
import { readToolhiveRegistry } from '../../toolhive-registry.ts'
import { readUpstreamRegistry } from '../../upstream-registry.ts'
import type { EntryCollector } from './entry-collector.ts'
import type { MemberSpan, Span } from './json-scan.ts'

/** Of the file whose head it is: for messages, and how much is asked of it. */
export interface FileRules {
  readonly file?: string | undefined
  readonly strict?: boolean | undefined
}

export interface HeadCheck {
  readonly into: EntryCollector
  readonly options: FileRules
  readonly kind: 'toolhive' | 'upstream' | 'list'
}

/** The members that say something about the file. What is wrong with them drops nothing. */
export function checkHead(bytes: Buffer, top: ReadonlyMap<string, MemberSpan>, { into, options, kind }: HeadCheck): void {
  const head: Record<string, Json> = {}
  for (const name of ['version', 'last_updated', 'meta']) {
    const span = top.get(name)
    const value = span === undefined ? undefined : smallValue(bytes, span)
    if (value !== undefined) head[name] = value
  }
  const found = kind === 'list' ? [] : headProblems(head, kind, options.strict ?? false)
  if (found.length > 0) into.warn(placeOf(options, 'file'), found)
}

function headProblems(head: JsonObject, kind: 'toolhive' | 'upstream', strict: boolean): readonly DocumentProblem[] {
  const { problems } =
    kind === 'upstream'
      ? readUpstreamRegistry({ ...head, data: { servers: [] } }, { strict })
      : readToolhiveRegistry({ ...head, servers: {} }, { strict })
  return problems.flatMap((problem) => problem.problems)
}

/** Null for what is too large or broken: no check takes that. */
function smallValue(bytes: Buffer, { start, end }: Span): Json {
  if (end - start > 65_536) return null
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8', start, end))
    return guardJson(value, createProblems()) ? value : null
  } catch {
    return null
  }
}

const LEFT_OUT: Readonly<Record<string, string>> = {
  groups: 'servers of groups are not listed by themselves, and groups are not served',
  skills: 'skills are not served',
  plugins: 'plugins are not served',
}

export interface LeftOut {
  readonly into: EntryCollector
  readonly options: FileRules
  readonly place: string
}

export function tellLeftOut(members: ReadonlyMap<string, MemberSpan>, { into, options, place }: LeftOut): void {
  for (const [name, message] of Object.entries(LEFT_OUT)) {
    const span = members.get(name)
    // Two characters are an empty list or object.
    if (span !== undefined && span.end - span.start > 2) into.warn(placeOf(options, `${place}${name}`), [{ pointer: '', message }])
  }
}

/** A place in one file of several. */
export function placeOf({ file }: FileRules, place: string): string {
  return file === undefined ? place : `${file}: ${place}`
}
