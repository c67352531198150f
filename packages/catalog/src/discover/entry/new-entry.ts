import type { JsonObject } from '../../catalog-entry.ts'
import { currentSchemaUrl } from '../../schema-version.ts'
import { checkServerDocument, publisherProvidedKey } from '../../server-document.ts'
import { extensionsKey } from '../../server-extensions.ts'
import { serverNameProblem } from '../../server-name.ts'
import type { Claims } from '../../sources/fetch/source-config.ts'
import { ExportAnnotation } from '../objects/annotations.ts'
import type { ExportOptions } from '../objects/export-options.ts'
import { ExportReason, type ExportWarning, exportWarning } from '../objects/export-warning.ts'
import type { McpResource } from '../objects/mcp-resource.ts'
import { annotatedDescription, madeDescription } from './description.ts'
import { type EntryAnnotations, type ReadAnnotations, readClaims, readEntryAnnotations } from './entry-annotations.ts'
import { compact, type ExportedEntry } from './exported-entry.ts'
import { exportMeta, exportMetaKey } from './exported-remote.ts'
import type { ResourceEvaluation } from './resource-evaluation.ts'

export interface NewEntry {
  readonly entry?: ExportedEntry
  readonly warnings: readonly ExportWarning[]
}

/** The entry of a resource whose image no source lists. */
export function newEntry(evaluation: ResourceEvaluation, name: string, options: ExportOptions): NewEntry {
  const { resource } = evaluation
  const { kind, namespace, annotations } = resource
  const self = { kind, namespace, name: resource.name }
  const warnings: ExportWarning[] = []
  const warn = (reason: ExportReason, message: string) => warnings.push(exportWarning(reason, self, message))
  const skip = (reason: ExportReason, message: string): NewEntry => {
    warn(reason, message)
    return { warnings }
  }

  const nameProblem = serverNameProblem(name)
  if (nameProblem !== undefined) return skip(ExportReason.InvalidServerName, nameProblem)
  const described = annotatedDescription(annotations)
  if (described === undefined && options.mode === 'operator')
    return skip(ExportReason.MissingDescription, `no source lists its image; set ${ExportAnnotation.description}`)
  const claims = readClaims(annotations)
  if (claims === 'malformed')
    return skip(ExportReason.InvalidClaims, `${ExportAnnotation.claims} must be a JSON object of texts or lists of texts`)
  if (claims !== undefined && options.mode === 'operator')
    return skip(ExportReason.InvalidClaims, `${ExportAnnotation.claims} cannot be kept in export mode operator`)

  if (described?.overview !== undefined)
    warn(ExportReason.DescriptionTruncated, 'its description has more than 100 characters; the whole text is its overview')
  const read = options.mode === 'server' ? readEntryAnnotations(annotations) : NOTHING_READ
  for (const problem of read.problems) warn(ExportReason.InvalidAnnotation, problem)

  const entry = new NewExportedEntry(evaluation, name, { options, claims, values: read.values })
  const check = checkServerDocument(entry.document, { level: 'semantic' })
  if (!check.ok) {
    const { pointer, message } = check.problems[0] ?? { pointer: '', message: '' }
    return skip(ExportReason.InvalidEntry, `${pointer} ${message}`)
  }
  return { entry, warnings }
}

const NOTHING_READ: ReadAnnotations = { values: {}, problems: [] }
const NO_TAGS: readonly string[] = []

interface EntryFacts {
  readonly options: ExportOptions
  readonly claims: Claims | undefined
  readonly values: EntryAnnotations
}

/** Keeps what its document is made from, and not the document, which is several times as large. */
class NewExportedEntry implements ExportedEntry {
  readonly name: string
  readonly version: string
  readonly tags: readonly string[]
  readonly claims?: Claims
  readonly #evaluation: ResourceEvaluation
  readonly #options: ExportOptions
  /** As they were: the server may be asked again meanwhile. */
  readonly #tools: readonly string[] | undefined

  constructor(evaluation: ResourceEvaluation, name: string, { options, claims, values }: EntryFacts) {
    this.name = name
    this.version = values.version ?? '1.0.0'
    this.tags = values.tag === undefined ? NO_TAGS : [values.tag]
    if (claims !== undefined) this.claims = claims
    this.#evaluation = evaluation
    this.#options = options
    this.#tools = options.mode === 'server' ? options.toolsOf?.(evaluation.resource) : undefined
  }

  get text(): string {
    return JSON.stringify(this.document)
  }

  get document(): JsonObject {
    const { resource, remotes } = this.#evaluation
    const { annotations, kind, namespace, name } = resource
    const { mode, clusterName } = this.#options
    const description = annotatedDescription(annotations) ?? madeDescription(resource)
    // An annotation says it better than the server.
    const values: EntryAnnotations = {
      ...(this.#tools === undefined ? {} : { tools: this.#tools }),
      ...(mode === 'server' ? readEntryAnnotations(annotations).values : {}),
    }
    return compact({
      $schema: currentSchemaUrl,
      name: this.name,
      title: values.title,
      description: description.text,
      version: this.version,
      icons: values.icon === undefined ? undefined : [{ src: values.icon }],
      remotes: remotes.map(({ type, url }) => ({ type, url })),
      _meta: {
        [publisherProvidedKey]: {
          [extensionsKey]: { [remotes[0]?.url ?? '']: extensions(resource, values, description.overview) },
        },
        [exportMetaKey]: exportMeta({ resources: [{ kind, namespace, name }], remotes, clusterName }),
      },
    })
  }
}

const UUID = /^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$/

function extensions(resource: McpResource, { tier, tag, tools, toolDefinitions }: EntryAnnotations, overview: string | undefined) {
  const { kind, namespace, name, uid, image, transport } = resource
  return compact({
    status: 'active',
    tier,
    tags: tag === undefined ? undefined : [tag],
    tools,
    tool_definitions: toolDefinitions,
    overview,
    metadata: {
      kubernetes: compact({
        kind,
        namespace,
        name,
        uid: uid !== undefined && UUID.test(uid) ? uid : undefined,
        image,
        transport,
      }),
    },
  })
}
