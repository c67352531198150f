import { jsonEqual } from '@thv/kernel/json'
import { forbidden, invalid, invalidShown, notSupported, required } from '@thv/kube-schema/field-problems'
import type { FieldProblem, JsonObject } from '@thv/kube-schema/kind-schema'
import { goJson } from '@thv/kube-schema/values/go-text'
import { labelMapProblems, labelSelectorProblems } from '../../../objects/field-checks.ts'
import { textAt } from '../../../objects/served-kind.ts'
import { numberAt, objectAt, objectsAt } from './fields.ts'
import { annotationProblems, selectorMatches } from './label-validation.ts'
import { podAnnotationProblems, podSpecProblems } from './pod-validation.ts'

export interface TemplateRules {
  /** As the server calls the kind when the selector is empty. */
  readonly kindWord: string
  /** When the selector makes no sense. */
  readonly nonsense: string
  /** As the server calls the kind where a deadline stands in the template. */
  readonly deadlineWord: string
}

/** Of a selector and the template of the pods that it has to select. */
export function selectedTemplateProblems(spec: JsonObject, { kindWord, nonsense, deadlineWord }: TemplateRules): FieldProblem[] {
  const selector = objectAt(spec, 'selector')
  const template = objectAt(spec, 'template') ?? {}
  const problems: FieldProblem[] = []
  if (selector === undefined) problems.push(required('spec.selector'))
  else {
    problems.push(...labelSelectorProblems('spec.selector', selector))
    if (isEmpty(selector))
      problems.push(invalidShown('spec.selector', shownSelector(selector), `empty selector is invalid for ${kindWord}`))
  }
  const labels = objectAt(template, 'metadata', 'labels')
  const matches = selector !== undefined && selectorMatches(selector, labels ?? {})
  if (matches === undefined && selector !== undefined)
    return [...problems, invalidShown('spec.selector', shownSelector(selector), nonsense)]
  if (matches === false)
    problems.push(invalid('spec.template.metadata.labels', labels ?? null, '`selector` does not match template `labels`'))
  return [...problems, ...templateProblems(template, 'spec.template'), ...foreverProblems(template, deadlineWord)]
}

export function immutableSelector(spec: JsonObject, old: JsonObject): FieldProblem[] {
  const selector = objectAt(spec, 'selector')
  if (jsonEqual(selector, objectAt(old, 'selector'))) return []
  return [invalidShown('spec.selector', selector ? shownSelector(selector) : 'null', 'field is immutable')]
}

export function templateProblems(template: JsonObject, path: string): FieldProblem[] {
  const spec = objectAt(template, 'spec') ?? {}
  const annotations = objectAt(template, 'metadata', 'annotations')
  const problems = [
    ...labelMapProblems(`${path}.labels`, objectAt(template, 'metadata', 'labels')),
    ...annotationProblems(annotations, `${path}.annotations`),
    ...podAnnotationProblems(annotations, spec, `${path}.annotations`),
    ...podSpecProblems(spec, `${path}.spec`),
  ]
  if (objectsAt(spec, 'ephemeralContainers').length > 0)
    problems.push(forbidden(`${path}.spec.ephemeralContainers`, 'ephemeral containers not allowed in pod template'))
  return problems
}

/** These kinds keep their pods running. */
export function foreverProblems(template: JsonObject, deadlineWord: string): FieldProblem[] {
  const path = 'spec.template.spec'
  const restart = textAt(template, 'spec', 'restartPolicy')
  const problems = restart === 'Always' ? [] : [notSupported(`${path}.restartPolicy`, restart, ['Always'])]
  if (numberAt(template, 'spec', 'activeDeadlineSeconds') !== undefined)
    problems.push(forbidden(`${path}.activeDeadlineSeconds`, `activeDeadlineSeconds in ${deadlineWord} is not Supported`))
  return problems
}

function isEmpty(selector: JsonObject): boolean {
  return Object.keys(objectAt(selector, 'matchLabels') ?? {}).length + objectsAt(selector, 'matchExpressions').length === 0
}

/** In the order of the server's struct. */
function shownSelector(selector: JsonObject): string {
  const expressions = objectsAt(selector, 'matchExpressions').map(({ key, operator, values }) => {
    const parts = [`"key":${goJson(key ?? '')}`, `"operator":${goJson(operator ?? '')}`]
    return `{${[...parts, ...(values === undefined ? [] : [`"values":${goJson(values)}`])].join(',')}}`
  })
  const labels = selector['matchLabels']
  const members = [
    ...(labels === undefined ? [] : [`"matchLabels":${goJson(labels)}`]),
    ...(expressions.length === 0 ? [] : [`"matchExpressions":[${expressions.join(',')}]`]),
  ]
  return `{${members.join(',')}}`
}
