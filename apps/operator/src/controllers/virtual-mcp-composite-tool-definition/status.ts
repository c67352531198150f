import type { Conditions, ConditionUpdate } from '@thv/kube'
import {
  VirtualMCPCompositeToolDefinitionCondition as Condition,
  VirtualMCPCompositeToolDefinitionReason as Reason,
  CompositeToolValidationStatus as Validation,
} from '@thv/resources/kinds/virtual-mcp-composite-tool-definition/constants'
import type { VirtualMCPCompositeToolDefinition } from '@thv/resources/kinds/virtual-mcp-composite-tool-definition/schema'
import { checkWorkflow, type WorkflowProblem, type WorkflowProblemCode } from '@thv/workflow/check-workflow'
import { nextConditions } from '../../deployment/status/conditions.ts'

type Status = NonNullable<VirtualMCPCompositeToolDefinition['status']>

export interface DefinitionFacts {
  /** Names of the VirtualMCPServers that reference it. */
  readonly servers: readonly string[]
  readonly now: number
}

/** The reason is that of the gravest problem. */
const REASONS: readonly (readonly [WorkflowProblemCode, string])[] = [
  ['cycle', Reason.DependencyCycle],
  ['schema', Reason.SchemaInvalid],
  ['template', Reason.TemplateInvalid],
]

/** Pure. */
export function definitionStatus(definition: VirtualMCPCompositeToolDefinition, { servers, now }: DefinitionFacts): Status {
  const { generation } = definition.metadata
  const { problems } = checkWorkflow(definition.spec)
  const set = problems.length === 0 ? VALID : invalid(problems)
  const conditions = nextConditions(definition.status?.conditions as Conditions | undefined, { set }, { generation, now })
  return {
    ...(generation !== undefined && { observedGeneration: generation }),
    validationStatus: problems.length === 0 ? Validation.Valid : Validation.Invalid,
    ...(problems.length > 0 && { validationErrors: problems.map(({ message }) => message) }),
    ...(servers.length > 0 && { referencingVirtualServers: [...new Set(servers)].toSorted() }),
    conditions: [...conditions],
  }
}

const VALID: readonly ConditionUpdate[] = [
  { type: Condition.WorkflowValidated, status: 'True', reason: Reason.ValidationSuccess, message: 'the definition is valid' },
  { type: Condition.Ready, status: 'True', reason: Reason.WorkflowReady, message: 'a VirtualMCPServer can offer the tool' },
]

function invalid(problems: readonly WorkflowProblem[]): ConditionUpdate[] {
  const [first] = problems
  const reason = REASONS.find(([code]) => problems.some((problem) => problem.code === code))?.[1] ?? Reason.ValidationFailed
  const more = problems.length > 1 ? `; and ${problems.length - 1} more, see status.validationErrors` : ''
  const message = `${first?.message ?? ''}${more}`
  return [
    { type: Condition.WorkflowValidated, status: 'False', reason, message },
    { type: Condition.Ready, status: 'False', reason: Reason.WorkflowNotReady, message },
  ]
}
