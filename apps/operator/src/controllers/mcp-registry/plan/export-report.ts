import type { ExportedEntry } from '@thv/catalog/discover/entry/exported-entry'
import { ExportReason, type ExportWarning } from '@thv/catalog/discover/objects/export-warning'
import { refText } from '@thv/catalog/discover/objects/object-ref'
import type { DocumentEntry } from '@thv/catalog/merge/registry-document'
import { shardDocument } from '@thv/catalog/shards/shards'
import type { ConditionUpdate } from '@thv/kube'
import { MCPRegistryCondition, MCPRegistryReason } from '@thv/resources/kinds/mcp-registry/constants'
import type { ExportReading } from '../../../export/export-follower.ts'
import type { ExportDecision } from '../../../export/export-scope.ts'

export interface ExportReport {
  readonly condition: ConditionUpdate
  /** Number of servers; undefined when nothing may be exported. */
  readonly servers: number | undefined
  /** Mode operator: the data for the ConfigMaps; undefined: those that are there stay. */
  readonly texts?: readonly (string | undefined)[]
}

const type = MCPRegistryCondition.RegistryExport
const MAX_NAMED = 10

/** The export in the status of a registry; undefined while it is unknown, and for one without. Pure. */
export function reportExport(decision: ExportDecision, reading: ExportReading | undefined): ExportReport | undefined {
  if (decision.kind === 'none') return undefined
  if (decision.kind === 'refused') return { condition: { type, status: 'False', ...decision.refusal }, servers: undefined }
  if (reading === undefined) return undefined
  const { result, problems } = reading
  const servers = new Set(result.entries.map(({ name }) => name)).size
  const warnings = result.warnings.filter(({ level }) => level === 'warning')
  const verdict = verdictOf(servers, warnings)
  const message = [`${servers} ${servers === 1 ? 'server' : 'servers'} exported`, ...leftOut(warnings), ...problems].join('. ')
  if (decision.scope.mode === 'server') return { condition: { type, ...verdict, message }, servers }
  const sharding = shardDocument({ format: 'upstream', entries: result.entries.map(documentEntry), groups: [] })
  if (sharding.ok) return { condition: { type, ...verdict, message }, servers, texts: sharding.texts }
  const tooLarge = `${sharding.bytes} bytes do not fit into 16 ConfigMaps: use mode server. What was served before is still served`
  return { condition: { type, status: 'False', reason: MCPRegistryReason.ExportTooLarge, message: tooLarge }, servers }
}

function documentEntry({ name, version, text, tags }: ExportedEntry): DocumentEntry {
  return { name, version, field: 'servers', text, tags }
}

function verdictOf(servers: number, warnings: readonly ExportWarning[]): Pick<ConditionUpdate, 'status' | 'reason'> {
  const has = (reason: ExportReason) => warnings.some((warning) => warning.reason === reason)
  const { WaitingForGatewayAddress, ConflictingConfiguration } = ExportReason
  if (has(WaitingForGatewayAddress)) return { status: 'False', reason: WaitingForGatewayAddress }
  const [first] = warnings
  if (servers === 0 && first !== undefined) return { status: 'False', reason: first.reason }
  return { status: 'True', reason: has(ConflictingConfiguration) ? ConflictingConfiguration : MCPRegistryReason.Exported }
}

/** The objects that need attention, with what to do for the first ones. */
function leftOut(warnings: readonly ExportWarning[]): string[] {
  if (warnings.length === 0) return []
  const named = warnings.slice(0, MAX_NAMED).map(({ reason, object, message }) => `${reason}: ${refText(object)}: ${message}`)
  const more = warnings.length - named.length
  return [`${named.join('; ')}${more > 0 ? `; and ${more} more` : ''}`]
}
