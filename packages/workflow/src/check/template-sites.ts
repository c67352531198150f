import { isObject } from '@thv/kernel/json'
import type { CanonicalCompositeStep, CanonicalCompositeTool } from '@thv/resources/shared/composite/composite-tool-normalise'
import { compileTemplate, type Template } from '../template/template.ts'
import type { Problems, Site } from './problems.ts'
import { type Reference, referencesOf } from './references.ts'

/** Where a template stands, and what it may use there. */
export interface TemplateScope extends Site {
  /** Steps that are done before. */
  readonly ancestors: ReadonlySet<string>
  /** Name of the item, inside a loop. */
  readonly itemVar?: string
  /** A missing value has a substitute: no step needs `defaultResults` because of this template. */
  readonly hasDefault?: boolean
}

const STEP_MEMBERS = ['status', 'output', 'content', 'error']
const WORKFLOW_MEMBERS = ['id', 'duration_ms', 'step_count', 'status', 'start_time']
const ROOTS = ['params', 'steps', 'workflow', 'forEach']
const OUTPUT_MEMBERS = { elicitation: ['action', 'content'], forEach: ['iterations', 'count', 'completed', 'failed'] } as const
/** Schemas that may have parameters beside those in `properties`. */
const OPEN_KEYWORDS = ['allOf', 'anyOf', 'oneOf', '$ref', '$dynamicRef', 'patternProperties', 'if', 'dependentSchemas']

/** Compiles the templates of a definition and checks what they refer to. */
export class TemplateSites {
  readonly #problems: Problems
  readonly #steps: ReadonlyMap<string, CanonicalCompositeStep>
  /** Undefined: any name may be a parameter. */
  readonly #parameters: ReadonlySet<string> | undefined

  constructor(problems: Problems, { steps, parameters = {} }: CanonicalCompositeTool) {
    this.#problems = problems
    this.#steps = new Map(steps.map((step) => [step.id, step]))
    const isOpen = OPEN_KEYWORDS.some((keyword) => keyword in parameters)
    const properties = parameters['properties']
    this.#parameters = isOpen ? undefined : new Set(isObject(properties) ? Object.keys(properties) : [])
  }

  /** An empty template stands in for one that cannot be compiled, so that the others are checked too. */
  compile(scope: TemplateScope, source: string): Template {
    let template: Template
    try {
      template = compileTemplate(source)
    } catch (error) {
      this.#problems.addTemplateError(scope, source, error)
      return compileTemplate('')
    }
    const seen = new Set<string>()
    for (const reference of referencesOf(template)) {
      const text = this.#problemOf(reference, scope)
      // `index .steps "x"` and its fields both name the step.
      if (text === undefined || seen.has(text)) continue
      seen.add(text)
      this.#problems.addAt(scope, { source, at: reference.at }, text)
    }
    return template
  }

  #problemOf({ path, isOptional }: Reference, scope: TemplateScope): string | undefined {
    const [root = '', first] = path
    if (root === 'forEach' && scope.itemVar === undefined) return '.forEach is only known inside a loop'
    if (!ROOTS.includes(root)) return `there is no .${root}: templates know .params, .steps and .workflow, and in a loop .forEach`
    if (first === undefined) return undefined
    if (root === 'params')
      return this.#parameters && !this.#parameters.has(first) ? `the tool has no parameter ${JSON.stringify(first)}` : undefined
    if (root === 'workflow') return oneOf('.workflow', WORKFLOW_MEMBERS, first)
    if (root === 'forEach') return oneOf('.forEach', [scope.itemVar ?? '', 'index'], first)
    return this.#stepProblem(path, isOptional || scope.hasDefault === true, scope)
  }

  #stepProblem(
    [, id = '', member, result]: readonly string[],
    isOptional: boolean,
    { ancestors, step: own }: TemplateScope,
  ): string | undefined {
    const step = this.#steps.get(id)
    if (!step) return `there is no step ${JSON.stringify(id)}`
    if (id === own) return `step ${id} cannot use its own result`
    if (!ancestors.has(id)) return `step ${id} may not be done yet: add it to dependsOn`
    if (member === undefined) return undefined
    if (!STEP_MEMBERS.includes(member)) return oneOf(`step ${id}`, STEP_MEMBERS, member)
    if (member !== 'output' || result === undefined) return undefined
    if (step.type !== 'tool' && !Object.hasOwn(step.defaultResults ?? {}, result)) {
      const known = OUTPUT_MEMBERS[step.type]
      if (!(known as readonly string[]).includes(result)) return oneOf(`the output of step ${id}`, known, result)
    }
    if (isOptional || !canBeSkipped(step) || Object.hasOwn(step.defaultResults ?? {}, result)) return undefined
    return `step ${id} may be skipped or fail, and then has no ${result}: add ${result} to its defaultResults`
  }
}

/** A loop that continues has an output whatever becomes of its items. */
function canBeSkipped({ type, condition, onError }: CanonicalCompositeStep): boolean {
  return condition !== undefined || (type !== 'forEach' && onError.action === 'continue')
}

function oneOf(what: string, known: readonly string[], name: string): string | undefined {
  return known.includes(name) ? undefined : `${what} has no ${JSON.stringify(name)}, only ${known.join(', ')}`
}
