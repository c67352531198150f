import type { DocumentProblem, JsonObject } from './catalog-entry.ts'
import { defaultJsonLimits, guardJson, isJsonObject, type JsonLimits, member } from './json-guard.ts'
import { type ObjectReader, readObject } from './object-reader.ts'
import { createProblems, type Problems } from './problems.ts'
import { type SchemaVersion, schemaVersionOf } from './schema-version.ts'
import { serverNameProblem } from './server-name.ts'
import { checkPackage } from './server-package.ts'
import { checkRemote } from './server-transport.ts'
import { versionProblem } from './server-version.ts'
import { unseenProblem, uriProblem, webUrlProblem } from './text.ts'

/**
 * How much is asked of a document:
 * `schema`: what the schema of its version says, and the rules of names and versions. For sources that others keep.
 * `semantic`: also that its parts fit together: URL variables declared, arguments usable. For what is published here.
 * `official`: also what only makes sense in the public registry: https everywhere, known forges and package registries.
 */
export type DocumentLevel = 'schema' | 'semantic' | 'official'

export interface DocumentOptions {
  readonly level?: DocumentLevel
  readonly limits?: JsonLimits
}

export interface DocumentRules {
  readonly schema: SchemaVersion
  readonly semantic: boolean
  readonly official: boolean
}

export type DocumentCheck =
  | { readonly ok: true; readonly document: JsonObject }
  | { readonly ok: false; readonly problems: readonly DocumentProblem[] }

export const publisherProvidedKey = 'io.modelcontextprotocol.registry/publisher-provided'

/**
 * Checks a `server.json` of any schema version. All problems come at once (at most a hundred); the document comes back as the very
 * object that was given: unknown members stay, nothing is reordered or filled in.
 */
export function checkServerDocument(value: unknown, options: DocumentOptions = {}): DocumentCheck {
  const problems = createProblems()
  if (!guardJson(value, problems, options.limits ?? defaultJsonLimits)) return { ok: false, problems: problems.list }
  if (!isJsonObject(value)) return { ok: false, problems: [{ pointer: '', message: 'must be an object' }] }
  checkTopLevel(value, options.level ?? 'semantic', problems)
  return problems.list.length === 0 ? { ok: true, document: value } : { ok: false, problems: problems.list }
}

function checkTopLevel(document: JsonObject, level: DocumentLevel, problems: Problems): void {
  const reader = readObject(document, '', problems)
  const official = level === 'official'
  const schema = schemaVersionOf(reader.text('$schema', { required: official }))
  if (schema.problem !== undefined) reader.problem('$schema', schema.problem)
  const rules: DocumentRules = { schema: schema.version, semantic: level !== 'schema', official }
  const { field } = rules.schema

  reader.text('name', { required: true, check: (name) => serverNameProblem(name, official ? { minPart: 2 } : {}) })
  reader.text('description', { required: true, min: 1, max: 100, check: rules.semantic ? blankProblem : undefined })
  reader.text('version', { required: true, check: versionProblem })
  reader.text('title', { min: 1, max: 100, check: (title) => unseenProblem(title) ?? (rules.semantic ? blankProblem(title) : undefined) })
  reader.text(field('websiteUrl'), { check: official ? websiteProblem : webUrlProblem })
  if (schema.version.id < '2025-09-29') reader.text('status', { oneOf: ['active', 'deprecated', 'deleted'] })
  reader.child('repository', {}, (repository) => checkRepository(repository, rules))
  reader.list('icons', {}, (icon) => checkIcon(icon, rules))
  reader.list('packages', {}, (pack) => checkPackage(pack, rules))
  reader.list('remotes', {}, (remote) => checkRemote(remote, rules))
  reader.child('_meta', {}, (meta) => checkMeta(meta, rules))
}

function checkRepository(repository: ObjectReader, rules: DocumentRules): void {
  const url = repository.text('url', { required: true, check: webUrlProblem })
  repository.text('source', { required: true })
  repository.text('id')
  repository.text('subfolder', { check: rules.semantic ? subfolderProblem : undefined })
  const forge = /^https?:\/\/(?:www\.)?(?:github|gitlab)\.com\/[\w.-]+\/[\w./-]+$/
  if (rules.official && url !== undefined && !forge.test(url)) repository.problem('url', 'must be a repository on github.com or gitlab.com')
}

const MIME_TYPES = ['image/png', 'image/jpeg', 'image/jpg', 'image/svg+xml', 'image/webp']

function checkIcon(icon: ObjectReader, rules: DocumentRules): void {
  icon.text('src', { required: true, max: 255, check: rules.official ? httpsProblem : uriProblem })
  icon.text('mimeType', { oneOf: MIME_TYPES })
  icon.texts('sizes', { check: (size) => (/^(?:\d+x\d+|any)$/.test(size) ? undefined : 'must be like 48x48, or any') })
  icon.text('theme', { oneOf: ['light', 'dark'] })
}

const MAX_PUBLISHER_PROVIDED = 262_144
const OFFICIAL_MAX_PUBLISHER_PROVIDED = 4_096

function checkMeta(meta: ObjectReader, rules: DocumentRules): void {
  const provided = meta.child(publisherProvidedKey, {}, () => {})
  if (provided === undefined) return
  const max = rules.official ? OFFICIAL_MAX_PUBLISHER_PROVIDED : MAX_PUBLISHER_PROVIDED
  const size = Buffer.byteLength(JSON.stringify(provided))
  if (size > max) meta.problem(publisherProvidedKey, `must be at most ${max} bytes of JSON, not ${size}`)
}

/** The publisher's own block, where a document has one. */
export function publisherProvided(document: JsonObject): JsonObject | undefined {
  const meta = member(document, '_meta')
  if (!isJsonObject(meta)) return undefined
  const provided = member(meta, publisherProvidedKey)
  return isJsonObject(provided) ? provided : undefined
}

function blankProblem(text: string): string | undefined {
  return text !== '' && text.trim() === '' ? 'must not be blank' : undefined
}

function httpsProblem(text: string): string | undefined {
  return uriProblem(text) ?? (/^https:/i.test(text) ? undefined : 'must use https')
}

function websiteProblem(text: string): string | undefined {
  return httpsProblem(text) ?? (/['"<>\s]/.test(text) ? 'must not contain quotes, angle brackets or spaces' : undefined)
}

function subfolderProblem(text: string): string | undefined {
  const segments = text.split('/')
  const clean = /^[\w./-]+$/.test(text) && segments.every((segment) => segment !== '' && segment !== '..' && segment !== '.')
  return clean ? undefined : 'must be a relative path inside the repository'
}
