import { invalid, notSupported, required } from '@thv/kube-schema/field-problems'
import type { FieldProblem, JsonObject } from '@thv/kube-schema/kind-schema'
import { type EmptyFields, withoutEmpty } from '../../objects/empty-fields.ts'
import { labelSelectorProblems, listOf, nameValueProblems, textsOf } from '../../objects/field-checks.ts'
import { plainRules } from '../../objects/kind-rules.ts'
import { at, isObject, type KindRules, textAt } from '../../objects/served-kind.ts'
import { problem } from '../../objects/status-error.ts'

const GROUP = 'rbac.authorization.k8s.io'

export const roleRules: KindRules = plainRules('path', {
  createOnUpdate: true,
  applyDefaults: withRules,
  validate: (role) => ruleProblems(role, true),
})

export const clusterRoleRules: KindRules = plainRules('path', {
  createOnUpdate: true,
  applyDefaults: withRules,
  validate: (role) => [...ruleProblems(role, false), ...aggregationProblems(role)],
})

export const roleBindingRules: KindRules = bindingRules(['Role', 'ClusterRole'])
export const clusterRoleBindingRules: KindRules = bindingRules(['ClusterRole'])

function bindingRules(kinds: readonly string[]): KindRules {
  const namespaced = kinds.includes('Role')
  return plainRules('path', {
    createOnUpdate: true,
    applyDefaults: withGroups,
    validate: (binding, old) => [
      ...roleRefProblems(binding, kinds),
      ...listOf(binding['subjects']).flatMap((subject, index) => subjectProblems(`subjects[${index}]`, subject, namespaced)),
      ...(old === undefined ? [] : changeProblems(binding, old)),
    ],
  })
}

const EMPTY: EmptyFields = { kept: new Set(['verbs', 'kind', 'name', 'rules']), maps: new Set(['metadata', 'matchLabels']) }

/** The real server always writes them, as null when there are none. */
function withRules(role: JsonObject): JsonObject {
  const tidy = withoutEmpty(role, EMPTY)
  const rules = listOf(tidy['rules'])
  return { ...tidy, rules: rules.length === 0 ? null : rules.map((rule) => ({ ...rule, verbs: rule['verbs'] ?? null })) }
}

function ruleProblems(role: JsonObject, namespaced: boolean): FieldProblem[] {
  return listOf(role['rules']).flatMap((rule, index) => {
    const field = `rules[${index}]`
    const count = (name: string) => textsOf(rule[name]).length
    const problems = count('verbs') === 0 ? [required(`${field}.verbs`, 'verbs must contain at least one value')] : []
    const paths = textsOf(rule['nonResourceURLs'])
    if (paths.length > 0) {
      const refuse = (why: string) => problems.push(invalid(`${field}.nonResourceURLs`, paths, why))
      if (namespaced) refuse('namespaced rules cannot apply to non-resource URLs')
      if (count('apiGroups') + count('resources') + count('resourceNames') > 0)
        refuse('rules cannot apply to both regular resources and non-resource URLs')
      return problems
    }
    if (count('apiGroups') === 0) problems.push(required(`${field}.apiGroups`, 'resource rules must supply at least one api group'))
    if (count('resources') === 0) problems.push(required(`${field}.resources`, 'resource rules must supply at least one resource'))
    return problems
  })
}

function aggregationProblems(role: JsonObject): FieldProblem[] {
  if (!isObject(role['aggregationRule'])) return []
  const field = 'aggregationRule.clusterRoleSelectors'
  const selectors = listOf(at(role, 'aggregationRule', 'clusterRoleSelectors'))
  if (selectors.length === 0) return [required(field, 'at least one clusterRoleSelector required if aggregationRule is non-nil')]
  return selectors.flatMap((selector, index) => {
    const wrong = labelSelectorProblems(`${field}[${index}]`, selector)
    return wrong.length === 0 ? [] : [...wrong, invalid(`${field}[${index}]`, null, 'invalid label selector.')]
  })
}

function withGroups(binding: JsonObject): JsonObject {
  const tidy = withoutEmpty(binding, EMPTY)
  const ref = isObject(tidy['roleRef']) ? tidy['roleRef'] : {}
  const subjects = listOf(tidy['subjects']).map((subject) => {
    const grouped = subject['kind'] === 'User' || subject['kind'] === 'Group'
    return { kind: '', ...(grouped ? { apiGroup: GROUP } : {}), name: '', ...subject }
  })
  return {
    ...tidy,
    roleRef: { kind: textAt(ref, 'kind'), name: textAt(ref, 'name'), apiGroup: textAt(ref, 'apiGroup') || GROUP },
    ...(subjects.length === 0 ? {} : { subjects }),
  }
}

function roleRefProblems(binding: JsonObject, kinds: readonly string[]): FieldProblem[] {
  const [group, kind, name] = ['apiGroup', 'kind', 'name'].map((member) => textAt(binding, 'roleRef', member))
  const problems: FieldProblem[] = []
  if (group !== GROUP) problems.push(notSupported('roleRef.apiGroup', group ?? '', [GROUP]))
  if (!kinds.includes(kind ?? '')) problems.push(notSupported('roleRef.kind', kind ?? '', kinds))
  if (name === undefined || name === '') return [...problems, required('roleRef.name')]
  return [...problems, ...nameValueProblems('roleRef.name', name, 'path')]
}

function subjectProblems(field: string, subject: JsonObject, namespaced: boolean): FieldProblem[] {
  const [kind, name, group] = [textAt(subject, 'kind'), textAt(subject, 'name'), textAt(subject, 'apiGroup')]
  const problems = name === '' ? [required(`${field}.name`)] : []
  switch (kind) {
    case 'ServiceAccount':
      if (name !== '') problems.push(...nameValueProblems(`${field}.name`, name, 'subdomain'))
      if (group !== '') problems.push(notSupported(`${field}.apiGroup`, group, ['']))
      if (!namespaced && textAt(subject, 'namespace') === '') problems.push(required(`${field}.namespace`))
      return problems
    case 'User':
    case 'Group':
      return group === GROUP ? problems : [...problems, notSupported(`${field}.apiGroup`, group, [GROUP])]
    default:
      return [...problems, notSupported(`${field}.kind`, kind, ['ServiceAccount', 'User', 'Group'])]
  }
}

/** Another role needs another binding, so that an edit never grants more than its subjects were shown. */
function changeProblems(binding: JsonObject, old: JsonObject): FieldProblem[] {
  const shown = (of: JsonObject) =>
    JSON.stringify({
      APIGroup: textAt(of, 'roleRef', 'apiGroup'),
      Kind: textAt(of, 'roleRef', 'kind'),
      Name: textAt(of, 'roleRef', 'name'),
    })
  if (shown(binding) === shown(old)) return []
  return [problem('roleRef', 'FieldValueInvalid', `Invalid value: ${shown(binding)}: cannot change roleRef`)]
}
