import { isObject, jsonEqual } from '@thv/kernel/json'
import { normaliseVirtualMcpServer } from '@thv/resources/kinds/virtual-mcp-server/normalise'
import type { VirtualMCPServer } from '@thv/resources/kinds/virtual-mcp-server/schema'
import type { CompositeTool } from '@thv/resources/shared/composite/composite-tool'
import { checkWorkflow } from '@thv/workflow/check-workflow'

/** An AdmissionReview of admission.k8s.io/v1 with its response. */
export interface ReviewAnswer {
  readonly apiVersion: 'admission.k8s.io/v1'
  readonly kind: 'AdmissionReview'
  readonly response: {
    readonly uid: string
    readonly allowed: boolean
    readonly status?: { readonly code: 422; readonly reason: 'Invalid'; readonly message: string }
    readonly warnings?: readonly string[]
  }
}

type UnknownObject = Readonly<Record<string, unknown>>

/** An API server shows 256 characters of a warning, and 4,096 of all together. */
const MAX_WARNINGS = 10
const MAX_SHOWN = 10

/** Answers a review; undefined when the document is none. Pure. */
export function reviewAdmission(document: unknown): ReviewAnswer | undefined {
  const request = isObject(document) && document['kind'] === 'AdmissionReview' ? document['request'] : undefined
  if (!isObject(request) || typeof request['uid'] !== 'string') return undefined
  const { uid, object, oldObject } = request
  if (!isObject(object)) return answer({ uid, allowed: true })
  const problems = problemsOf(object)
  if (problems.length === 0) return answer({ uid, allowed: true })
  if (mustPass(object, oldObject))
    return answer({ uid, allowed: true, warnings: problems.slice(0, MAX_WARNINGS).map((text) => text.slice(0, 256)) })
  const shown = problems.slice(0, MAX_SHOWN).join('; ')
  const more = problems.length > MAX_SHOWN ? `; and ${problems.length - MAX_SHOWN} more` : ''
  return answer({ uid, allowed: false, status: { code: 422, reason: 'Invalid', message: shown + more } })
}

function answer(response: ReviewAnswer['response']): ReviewAnswer {
  return { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response }
}

/** An invalid object that is stored already can be labeled and deleted: only a changed spec has to be right. */
function mustPass(object: UnknownObject, before: unknown): boolean {
  if (isObject(object['metadata']) && object['metadata']['deletionTimestamp'] !== undefined) return true
  return isObject(before) && jsonEqual(before['spec'], object['spec'])
}

function problemsOf(object: UnknownObject): readonly string[] {
  const { kind, spec } = object
  if (!isObject(spec)) return []
  if (kind === 'VirtualMCPCompositeToolDefinition')
    return checkWorkflow(spec as unknown as CompositeTool).problems.map(({ message }) => message)
  return kind === 'VirtualMCPServer' ? serverProblems(spec) : []
}

function serverProblems(spec: UnknownObject): readonly string[] {
  const field = 'spec.config.compositeTools'
  const own = normaliseVirtualMcpServer({ spec: spec as unknown as VirtualMCPServer['spec'] }).problems
  const config = spec['config']
  const tools = isObject(config) && Array.isArray(config['compositeTools']) ? (config['compositeTools'] as unknown as CompositeTool[]) : []
  return [
    ...own.filter((problem) => !problem.field.startsWith(field)).map(({ message }) => message),
    ...tools.flatMap((tool, index) => toolProblems(tool, `${field}[${index}]`)),
  ]
}

/** Some messages are about the whole tool and name no field: among several tools one must know which. */
function toolProblems(tool: CompositeTool, place: string): readonly string[] {
  return checkWorkflow(tool, place).problems.map(({ message }) => (message.includes(place) ? message : `${place}: ${message}`))
}
