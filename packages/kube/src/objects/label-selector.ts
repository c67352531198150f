import { parseSelectorText } from './label-selector-parser.ts'

/** `LabelSelector` as it stands in manifests. */
export interface LabelSelector {
  matchLabels?: Record<string, string>
  matchExpressions?: LabelSelectorExpression[]
}

export interface LabelSelectorExpression {
  key: string
  operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist'
  values?: string[]
}

/** One term of a selector; all terms must hold. `Gt` and `Lt` exist in the text form only. */
export interface LabelRequirement {
  readonly key: string
  readonly operator: LabelSelectorExpression['operator'] | 'Gt' | 'Lt'
  readonly values: readonly string[]
}

type Labels = Readonly<Record<string, string>> | undefined

/** A selector parsed once. `text` is the canonical form for a `labelSelector` query parameter. */
export interface LabelMatcher {
  readonly requirements: readonly LabelRequirement[]
  readonly text: string
  matches(labels: Labels): boolean
}

/**
 * Takes the text of a query parameter (`a=b,c in (d,e),!f`) or a `LabelSelector`; an empty one matches everything. Throws
 * a RangeError for whatever the API server would refuse; ask `labelSelectorProblem` first about a selector from a user.
 */
export function parseLabelSelector(selector: string | LabelSelector): LabelMatcher {
  const requirements = typeof selector === 'string' ? parseSelectorText(selector) : fromObject(selector)
  for (const requirement of requirements) check(requirement)
  return {
    requirements,
    text: requirements.map(format).join(','),
    matches: (labels) => requirements.every((requirement) => holds(requirement, labels)),
  }
}

/** The problem of the selector, in words, or undefined. */
export function labelSelectorProblem(selector: string | LabelSelector): string | undefined {
  try {
    parseLabelSelector(selector)
    return undefined
  } catch (error) {
    if (error instanceof RangeError) return error.message
    throw error
  }
}

/** As the API server has it: `NotIn` (and `!=`) also hold when the label is absent. */
function holds({ key, operator, values }: LabelRequirement, labels: Labels): boolean {
  const value = labels !== undefined && Object.hasOwn(labels, key) ? labels[key] : undefined
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value)
    case 'NotIn':
      return value === undefined || !values.includes(value)
    case 'Exists':
      return value !== undefined
    case 'DoesNotExist':
      return value === undefined
    case 'Gt':
    case 'Lt':
      return value !== undefined && INTEGER.test(value) && compareIntegers(value, values[0] ?? '', operator)
  }
}

function compareIntegers(value: string, limit: string, operator: 'Gt' | 'Lt'): boolean {
  const [a, b] = [BigInt(value), BigInt(limit)]
  return operator === 'Gt' ? a > b : a < b
}

function fromObject(selector: LabelSelector): LabelRequirement[] {
  const equalities = Object.entries(selector.matchLabels ?? {}).map(
    ([key, value]): LabelRequirement => ({ key, operator: 'In', values: [value] }),
  )
  const expressions = (selector.matchExpressions ?? []).map(
    ({ key, operator, values }): LabelRequirement => ({ key, operator, values: values ?? [] }),
  )
  return [...equalities, ...expressions]
}

function check({ key, operator, values }: LabelRequirement): void {
  if (!isLabelKey(key)) throw invalid(`"${key}" is not a label key`)
  switch (operator) {
    case 'In':
    case 'NotIn':
      if (values.length === 0) throw invalid(`operator ${operator} of "${key}" needs at least one value`)
      break
    case 'Exists':
    case 'DoesNotExist':
      if (values.length > 0) throw invalid(`operator ${operator} of "${key}" takes no values`)
      break
    case 'Gt':
    case 'Lt':
      if (values.length !== 1 || !INTEGER.test(values[0] ?? '')) throw invalid(`operator ${operator} of "${key}" needs one whole number`)
      break
    default:
      throw invalid(`operator "${String(operator)}" of "${key}" is not one of In, NotIn, Exists, DoesNotExist`)
  }
  const bad = values.find((value) => !isLabelValue(value))
  if (bad !== undefined) throw invalid(`"${bad}" is not a label value`)
}

function format({ key, operator, values }: LabelRequirement): string {
  switch (operator) {
    case 'In':
      return values.length === 1 ? `${key}=${values[0]}` : `${key} in (${values.join(',')})`
    case 'NotIn':
      return values.length === 1 ? `${key}!=${values[0]}` : `${key} notin (${values.join(',')})`
    case 'Exists':
      return key
    case 'DoesNotExist':
      return `!${key}`
    case 'Gt':
      return `${key}>${values[0]}`
    case 'Lt':
      return `${key}<${values[0]}`
  }
}

/** At most 63 characters, letters and digits at both ends; may be empty. */
export function isLabelValue(value: string): boolean {
  return value === '' || (value.length <= 63 && NAME.test(value))
}

/** A name, or a DNS subdomain, a slash and a name. */
export function isLabelKey(key: string): boolean {
  const [first, second, ...more] = key.split('/')
  if (first === undefined || more.length > 0) return false
  if (second === undefined) return first.length <= 63 && NAME.test(first)
  return first.length <= 253 && SUBDOMAIN.test(first) && second.length <= 63 && NAME.test(second)
}

const NAME = /^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/
const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/
const INTEGER = /^[+-]?[0-9]+$/

function invalid(problem: string): RangeError {
  return new RangeError(`label selector: ${problem}`)
}
