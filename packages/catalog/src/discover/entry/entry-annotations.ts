import type { Json, JsonObject } from '../../catalog-entry.ts'
import { guardJson } from '../../json-guard.ts'
import { createProblems } from '../../problems.ts'
import { toolNameProblem } from '../../server-extensions.ts'
import type { Claims } from '../../sources/fetch/source-config.ts'
import { lengthOf, unseenProblem, uriProblem } from '../../text.ts'
import { type Annotations, ExportAnnotation } from '../objects/annotations.ts'

/** Descriptive annotations of a new entry that are well-formed. */
export interface EntryAnnotations {
  readonly title?: string
  readonly icon?: string
  readonly version?: string
  readonly tier?: string
  readonly tag?: string
  readonly tools?: readonly string[]
  readonly toolDefinitions?: readonly JsonObject[]
}

export interface ReadAnnotations {
  readonly values: EntryAnnotations
  /** One line for each annotation that is ignored. */
  readonly problems: readonly string[]
}

const SEMVER = /^v?(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)(?:-[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?$/
const TAG = /^[a-z0-9][a-z0-9_-]*[a-z0-9]$/

/** A malformed annotation is ignored alone. */
export function readEntryAnnotations(annotations: Annotations): ReadAnnotations {
  const problems: string[] = []
  function read<T>(
    name: string,
    parse: (text: string) => T | string,
    key: keyof EntryAnnotations,
  ): Partial<Record<keyof EntryAnnotations, T>> {
    const text = annotations[name]
    if (text === undefined) return {}
    const value = parse(text)
    if (typeof value === 'string' && value.startsWith(REFUSED)) {
      problems.push(`${name} ${value.slice(REFUSED.length)}; it is ignored`)
      return {}
    }
    return { [key]: value } as Partial<Record<keyof EntryAnnotations, T>>
  }
  const values = {
    ...read(ExportAnnotation.title, title, 'title'),
    ...read(ExportAnnotation.icon, icon, 'icon'),
    ...read(ExportAnnotation.version, version, 'version'),
    ...read(ExportAnnotation.tier, tier, 'tier'),
    ...read(ExportAnnotation.category, tag, 'tag'),
    ...read(ExportAnnotation.tools, tools, 'tools'),
    ...read(ExportAnnotation.toolDefinitions, toolDefinitions, 'toolDefinitions'),
  } as EntryAnnotations
  return { values, problems }
}

/** No annotation can begin with a NUL. */
const REFUSED = '\0'
const refused = (why: string) => `${REFUSED}${why}`

function title(text: string): string {
  const trimmed = text.trim()
  if (trimmed === '' || lengthOf(trimmed, 100) > 100) return refused('must have 1 to 100 characters')
  const problem = unseenProblem(trimmed)
  return problem === undefined ? trimmed : refused(problem)
}

function icon(text: string): string {
  const fits = text.length <= 255 && text.startsWith('https://') && uriProblem(text) === undefined
  return fits ? text : refused('must be an https URL of at most 255 characters')
}

function version(text: string): string {
  return text.length <= 255 && SEMVER.test(text) ? text : refused('must be a semantic version such as 1.2.3, without build metadata')
}

function tier(text: string): string {
  return text === 'Official' || text === 'Community' ? text : refused('must be Official or Community')
}

function tag(text: string): string {
  return text.length <= 64 && TAG.test(text) ? text : refused('must be two or more lower-case letters, digits, underscores and hyphens')
}

function tools(text: string): readonly string[] | string {
  const value = parseJson(text)
  const isList = Array.isArray(value) && value.every((item) => typeof item === 'string' && toolNameProblem(item) === undefined)
  if (!isList) return refused('must be a JSON array of tool names')
  return [...new Set(value as readonly string[])]
}

function toolDefinitions(text: string): readonly JsonObject[] | string {
  const value = parseJson(text)
  const isList = Array.isArray(value) && value.every((item) => isNamed(item))
  return isList ? (value as readonly JsonObject[]) : refused('must be a JSON array of MCP tools, each with a name')
}

function isNamed(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && typeof (value as { name?: unknown }).name === 'string'
}

/** Claims of a new entry; `malformed` where the annotation cannot be honored. */
export function readClaims(annotations: Annotations): Claims | 'malformed' | undefined {
  const text = annotations[ExportAnnotation.claims]
  if (text === undefined) return undefined
  const value = parseJson(text)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'malformed'
  const entries = Object.entries(value)
  const fits = entries.length > 0 && entries.every(([, claim]) => isClaim(claim))
  return fits ? (value as Claims) : 'malformed'
}

function isClaim(value: unknown): boolean {
  return typeof value === 'string' || (Array.isArray(value) && value.length > 0 && value.every((item) => typeof item === 'string'))
}

function parseJson(text: string): Json | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return guardJson(value, createProblems()) ? value : undefined
  } catch {
    return undefined
  }
}
