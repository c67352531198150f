import type { FieldProblem, Json } from '@thv/kube-schema/kind-schema'
import { headerOf } from '../http/read-input.ts'
import { type ApiCall, flagOf, isDryRun } from '../http/request-context.ts'
import { forbiddenValue, invalid, invalidValue, problem, requiredValue } from '../objects/status-error.ts'

export type FieldValidation = 'Ignore' | 'Warn' | 'Strict'

/** Options of a write, from its query. */
export interface WriteOptions {
  readonly dryRun: boolean
  readonly fieldManager: string
  readonly fieldValidation: FieldValidation
  readonly force: boolean
}

const MODES: readonly string[] = ['Ignore', 'Warn', 'Strict']

/** `kind`: what the real server calls these options in its refusal, for example `CreateOptions`. `apply`: the patch is one. */
export function writeOptions({ query, exchange }: ApiCall, kind: string, apply = false): WriteOptions {
  const problems: FieldProblem[] = [...dryRunProblems(query.getAll('dryRun'))]
  const validation = query.get('fieldValidation') || 'Warn'
  if (!MODES.includes(validation))
    problems.push(
      problem(
        'fieldValidation',
        'FieldValueNotSupported',
        `Unsupported value: ${JSON.stringify(validation)}: supported values: "", "Ignore", "Strict", "Warn"`,
      ),
    )
  const force = flagOf(query, 'force')
  if (force && !apply && kind === 'PatchOptions') problems.push(forbiddenValue('force', 'may not be specified for non-apply patch'))
  const manager = query.get('fieldManager') ?? ''
  if (manager === '' && apply) problems.push(requiredValue('fieldManager', 'is required for apply patch'))
  if (manager.length > 128) problems.push(problem('fieldManager', 'FieldValueTooLong', 'Too long: may not be more than 128 bytes'))
  else if (/[^\P{C}]/u.test(manager)) problems.push(invalidValue('fieldManager', manager, 'should only contain printable characters'))
  if (problems.length > 0) throw invalid({ group: 'meta.k8s.io', kind, plural: '' }, '', problems)
  return {
    dryRun: isDryRun(query),
    fieldManager: manager || agentName(headerOf(exchange, 'user-agent')),
    fieldValidation: validation as FieldValidation,
    force,
  }
}

export function dryRunProblems(values: readonly Json[]): FieldProblem[] {
  if (values.every((value) => value === 'All')) return []
  return [problem('dryRun', 'FieldValueNotSupported', `Unsupported value: ${JSON.stringify(values)}: supported values: "All"`)]
}

/** Without a name of its own a client is known by its program's. */
function agentName(agent: string): string {
  return (agent.split('/', 1)[0] ?? '').replaceAll(/\p{C}/gu, '').slice(0, 128) || 'unknown'
}
