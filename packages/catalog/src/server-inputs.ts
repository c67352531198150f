import type { ObjectReader } from './object-reader.ts'
import type { DocumentRules } from './server-document.ts'

const FORMATS = ['string', 'number', 'boolean', 'filepath']

/** A value that a user fills in: of a header, an environment variable, an argument or a variable of those. */
function checkInput(input: ObjectReader, rules: DocumentRules): void {
  const { field } = rules.schema
  input.text('description')
  input.flag(field('isRequired'))
  input.flag(field('isSecret'))
  input.text('format', { oneOf: FORMATS })
  input.text('value')
  input.text('default')
  input.text('placeholder')
  input.texts('choices')
}

/** A header or an environment variable. */
export function checkKeyValue(input: ObjectReader, rules: DocumentRules): string | undefined {
  const name = input.text('name', { required: true, ...(rules.semantic ? { min: 1 } : {}) })
  checkInput(input, rules)
  checkVariables(input, rules)
  return name
}

/** One level only: a variable has no variables. */
export function checkVariables(owner: ObjectReader, rules: DocumentRules): readonly string[] {
  const variables = owner.map('variables', {}, (variable) => checkInput(variable, rules))
  return Object.keys(variables ?? {})
}

/** Returns the names by which a transport's URL may refer to the argument. */
export function checkArgument(argument: ObjectReader, rules: DocumentRules): readonly string[] {
  const { field } = rules.schema
  const type = argument.text('type', { required: true, oneOf: ['positional', 'named'] })
  checkInput(argument, rules)
  checkVariables(argument, rules)
  argument.flag(field('isRepeated'))
  if (type === 'named') return checkNamed(argument, rules)
  if (type !== 'positional') return []
  const hint = argument.text(field('valueHint'))
  const { object } = argument
  if (!Object.hasOwn(object, field('valueHint')) && !Object.hasOwn(object, 'value')) {
    argument.problem('', `a positional argument needs ${field('valueHint')} or value`)
  }
  return hint === undefined ? [] : [hint]
}

function checkNamed(argument: ObjectReader, rules: DocumentRules): readonly string[] {
  const name = argument.text('name', { required: true })
  if (name === undefined) return []
  if (rules.semantic) {
    if (name === '') argument.problem('name', 'must not be empty')
    if (/[ <>$]/.test(name)) argument.problem('name', "must be the flag alone, without space, '<', '>' or '$'")
    for (const member of ['value', 'default']) {
      const text = argument.object[member]
      if (name !== '' && typeof text === 'string' && text.startsWith(name)) argument.problem(member, 'must not repeat the name of the flag')
    }
  }
  return [name, name.replace(/^-+/, '')]
}
