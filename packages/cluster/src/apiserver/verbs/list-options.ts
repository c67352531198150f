import type { FieldProblem } from '@thv/kube-schema/kind-schema'
import { flagOf, numberOf } from '../http/request-context.ts'
import { forbiddenValue, invalid, problem } from '../objects/status-error.ts'

const OPTIONS = { group: 'meta.k8s.io', kind: 'ListOptions', plural: '' }
const MATCH = 'resourceVersionMatch'
const EXACT = 'Exact'
const NOT_OLDER = 'NotOlderThan'

/** Refuses what a list, a watch or the deletion of a collection cannot mean: numbers that are none, and options that exclude each other. */
export function checkListOptions(query: URLSearchParams): void {
  for (const name of ['limit', 'timeoutSeconds']) numberOf(query, name)
  const problems = flagOf(query, 'watch') ? watchProblems(query) : listProblems(query)
  if (problems.length > 0) throw invalid(OPTIONS, '', problems)
}

function listProblems(query: URLSearchParams): FieldProblem[] {
  const problems: FieldProblem[] = []
  const [match, version] = [query.get(MATCH) ?? '', query.get('resourceVersion') ?? '']
  if (match !== '') {
    if (version === '') problems.push(forbiddenValue(MATCH, `${MATCH} is forbidden unless resourceVersion is provided`))
    if (hasContinue(query)) problems.push(forbiddenValue(MATCH, `${MATCH} is forbidden when continue is provided`))
    if (match !== EXACT && match !== NOT_OLDER) problems.push(unsupportedMatch(match, [EXACT, NOT_OLDER, '']))
    if (match === EXACT && version === '0') problems.push(forbiddenValue(MATCH, `${MATCH} "exact" is forbidden for resourceVersion "0"`))
  }
  if (query.has('sendInitialEvents')) problems.push(forbiddenValue('sendInitialEvents', 'sendInitialEvents is forbidden for list'))
  return problems
}

function watchProblems(query: URLSearchParams): FieldProblem[] {
  const problems: FieldProblem[] = []
  const [match, wantsState] = [query.get(MATCH) ?? '', query.has('sendInitialEvents')]
  if (wantsState && match !== NOT_OLDER) problems.push(forbiddenValue(MATCH, `sendInitialEvents requires setting ${MATCH} to ${NOT_OLDER}`))
  if (match !== '' && !wantsState)
    problems.push(forbiddenValue(MATCH, `${MATCH} is forbidden for watch unless sendInitialEvents is provided`))
  if (match !== '' && match !== NOT_OLDER) problems.push(unsupportedMatch(match, [NOT_OLDER]))
  if (hasContinue(query)) problems.push(forbiddenValue(MATCH, `${MATCH} is forbidden when continue is provided`))
  return problems
}

function hasContinue(query: URLSearchParams): boolean {
  return (query.get('continue') ?? '') !== ''
}

function unsupportedMatch(match: string, known: readonly string[]): FieldProblem {
  const list = known.map((one) => JSON.stringify(one)).join(', ')
  return problem(MATCH, 'FieldValueNotSupported', `Unsupported value: ${JSON.stringify(match)}: supported values: ${list}`)
}
