import { type Correlation, correlatedItem, correlatedMember, isUnchanged } from '../cel/correlation.ts'
import { invalid, NO_FIELD } from '../field-problems.ts'
import type { FieldProblem, Json } from '../kind-schema.ts'
import { furtherOf, isMap, own, propertyOf, type SchemaNode } from '../schema-node.ts'
import { goQuote } from '../values/go-text.ts'
import { formatCheck } from './formats.ts'
import { type Failure, type Outcome, OutcomeBuilder } from './outcome.ts'
import { scalarChecks } from './scalar-checks.ts'
import { fieldOf, missing, sizeChecks, typeFailure, typeNames } from './shape-checks.ts'

/** All failures of a value against a schema; `correlation` on updates, `base` where the value is not the root object. */
export interface Subject {
  readonly value: Json
  /** As in the messages: `spec.list[0].map.key`. */
  readonly path: string
  /** Base of the path: `` for a resource, the field path of a schema for its default. */
  readonly base: string
  readonly correlation?: Correlation | undefined
}

export type Validator = (subject: Subject) => Outcome

/** Compiled once per schema. The order of checks is that of the real server: it decides which alternative is reported. */
export function compileValidator(node: SchemaNode): Validator {
  const types = typeNames(node)
  const format = formatCheck(node.format) && node.format
  const scalars = scalarChecks(node)
  const alternatives = compileAlternatives(node)
  const members = compileMembers(node)
  const items = node.items && compileValidator(node.items)
  const hasType = types.length > 0 || format !== undefined

  return (subject) => {
    const { value } = subject
    const result = new OutcomeBuilder()
    const wrongType = hasType ? typeFailure({ types, format, nullable: node.nullable === true }, subject) : undefined
    if (wrongType) result.add(wrongType)
    else if (hasType || value === null) result.count()
    if (value === null) {
      for (const failure of scalars.enumOf(subject)) result.add(failure)
      return result.outcome
    }
    if (hasType) result.count()
    result.merge(alternatives(subject))
    result.count()
    if (typeof value === 'string') {
      for (const failure of [...scalars.text(subject), ...scalars.format(subject)]) result.add(failure)
      result.count()
      if (format) result.count()
    }
    if (typeof value === 'number') {
      for (const failure of scalars.number(subject)) result.add(failure)
      result.count()
      result.count()
    }
    if (Array.isArray(value)) {
      value.forEach((_item, index) => {
        if (items) result.merge(below(items, itemSubject(subject, index)))
      })
      for (const failure of sizeChecks(node, subject)) result.add(failure)
      result.count()
      result.count()
    }
    for (const failure of scalars.enumOf(subject)) result.add(failure)
    result.count()
    if (isMap(value)) {
      for (const failure of sizeChecks(node, subject)) result.add(failure)
      result.merge(members(subject))
      result.count()
    }
    result.count()
    return result.outcome
  }
}

/** Not refused again on update if it is as it was. */
function below(validate: Validator, subject: Subject): Outcome {
  const outcome = validate(subject)
  return outcome.failures.length > 0 && isUnchanged(subject.correlation) ? { failures: [], matches: outcome.matches } : outcome
}

/** A whole resource or a default. */
export function validateRoot(validate: Validator, subject: Subject): readonly FieldProblem[] {
  return below(validate, subject).failures.map(({ problem }) => problem)
}

function compileMembers(node: SchemaNode): Validator {
  const properties = new Map(Object.entries(node.properties ?? {}).map(([name, property]) => [name, compileValidator(property)]))
  const further = furtherOf(node)
  const validateFurther = further && compileValidator(further)

  return (subject) => {
    const result = new OutcomeBuilder()
    if (!isMap(subject.value)) return result.outcome
    for (const name of Object.keys(subject.value)) {
      if (propertyOf(node, name)) continue
      if (validateFurther) result.merge(below(validateFurther, memberSubject(subject, name, `${subject.path}.${name}`)))
      else if (node.additionalProperties === false) result.add(notAllowed(subject, name))
    }
    for (const [name, validate] of properties) {
      if (!Object.hasOwn(subject.value, name)) continue
      result.merge(below(validate, memberSubject(subject, name, subject.path === '' ? name : `${subject.path}.${name}`)))
    }
    for (const name of node.required ?? []) {
      if (!Object.hasOwn(subject.value, name)) result.add(missing(subject, name))
    }
    return result.outcome
  }
}

function notAllowed(subject: Subject, name: string): Failure {
  const text = `${subject.path}.${name} in body is a forbidden property`
  return { text, problem: invalid(fieldOf(subject), name, text) }
}

function memberSubject({ value, base, correlation }: Subject, name: string, path: string): Subject {
  const isTypeMeta = path === 'apiVersion' || path === 'kind'
  return {
    value: (isMap(value) ? own(value, name) : undefined) ?? null,
    path,
    base,
    correlation: isTypeMeta ? undefined : correlatedMember(correlation, name),
  }
}

function itemSubject({ value, path, base, correlation }: Subject, index: number): Subject {
  return {
    value: (value as readonly Json[])[index] ?? null,
    path: `${path}[${index}]`,
    base,
    correlation: correlatedItem(correlation, index),
  }
}

function compileAlternatives(node: SchemaNode): Validator {
  const [anyOf, oneOf, allOf] = [node.anyOf ?? [], node.oneOf ?? [], node.allOf ?? []].map((list) => list.map(compileValidator))
  const not = node.not && compileValidator(node.not)

  return (subject) => {
    const result = new OutcomeBuilder()
    if (anyOf?.length) {
      const outcomes = anyOf.map((validate) => validate(subject))
      const good = outcomes.find(isGood)
      if (!good) result.add(composite(subject, 'must validate at least one schema (anyOf)'))
      result.merge(good ?? furthest(outcomes))
    }
    if (oneOf?.length) {
      const outcomes = oneOf.map((validate) => validate(subject))
      const good = outcomes.filter(isGood)
      if (good.length !== 1) {
        const found = good.length === 0 ? 'Found none valid' : `Found ${good.length} valid alternatives`
        result.add(composite(subject, `must validate one and only one schema (oneOf). ${found}`))
        if (good.length === 0) result.merge(furthest(outcomes))
      } else result.merge(good[0])
    }
    if (allOf?.length) {
      const outcomes = allOf.map((validate) => validate(subject))
      for (const outcome of outcomes) result.merge(outcome)
      const good = outcomes.filter(isGood).length
      if (good !== outcomes.length) {
        result.add(composite(subject, `must validate all the schemas (allOf)${good === 0 ? '. None validated' : ''}`))
      }
    }
    if (not && isGood(not(subject))) result.add(composite(subject, 'must not validate the schema (not)'))
    result.count()
    return result.outcome
  }
}

function isGood(outcome: Outcome): boolean {
  return outcome.failures.length === 0
}

function furthest(outcomes: readonly Outcome[]): Outcome | undefined {
  return outcomes.reduce<Outcome | undefined>((best, next) => (!best || next.matches > best.matches ? next : best), undefined)
}

/** The real server gives these no field. */
function composite({ path, base }: Subject, what: string): Failure {
  const text = `${goQuote(path)} ${what}`
  return { text, problem: invalid(base === '' ? NO_FIELD : base, '', text) }
}
