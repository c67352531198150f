import type { ObjectReader } from './object-reader.ts'
import { quote } from './problems.ts'
import type { DocumentRules } from './server-document.ts'
import { checkArgument, checkKeyValue } from './server-inputs.ts'
import { checkLocalTransport } from './server-transport.ts'
import { versionProblem } from './server-version.ts'
import { uriProblem } from './text.ts'

const KNOWN_TYPES = ['npm', 'pypi', 'oci', 'nuget', 'mcpb', 'cargo']
const VERSION_NEEDED = ['npm', 'pypi', 'nuget', 'cargo']

export function checkPackage(pack: ObjectReader, rules: DocumentRules): void {
  const { field, packageVersionRequired } = rules.schema
  const type = pack.text(field('registryType'), { required: true, check: rules.semantic ? notEmpty : undefined })
  pack.text('identifier', { required: true, check: rules.semantic ? identifierProblem : undefined })
  pack.text('version', { required: packageVersionRequired, check: versionProblem })
  pack.text(field('registryBaseUrl'), { check: uriProblem })
  pack.text(field('fileSha256'), { check: sha256Problem })
  pack.text(field('runtimeHint'))
  const names = new Set<string>()
  for (const list of ['runtimeArguments', 'packageArguments']) {
    pack.list(field(list), {}, (argument) => {
      for (const name of checkArgument(argument, rules)) names.add(name)
    })
  }
  pack.list(field('environmentVariables'), {}, (variable) => {
    const name = checkKeyValue(variable, rules)
    if (name !== undefined) names.add(name)
  })
  pack.child('transport', { required: true }, (transport) => checkLocalTransport(transport, rules, names))
  if (rules.semantic && type !== undefined) checkType(pack, rules, type)
}

function checkType(pack: ObjectReader, rules: DocumentRules, type: string): void {
  const { field } = rules.schema
  const has = (name: string): boolean => Object.hasOwn(pack.object, name)
  if (rules.official && !KNOWN_TYPES.includes(type)) {
    pack.problem(field('registryType'), `must be one of ${KNOWN_TYPES.join(', ')}, not ${quote(type)}`)
  }
  if (VERSION_NEEDED.includes(type) && !has('version') && !rules.schema.packageVersionRequired)
    pack.problem('version', `is required for ${type}`)
  if (type === 'mcpb' && !has(field('fileSha256'))) pack.problem(field('fileSha256'), 'is required for mcpb')
  if (rules.official && (type === 'oci' || type === 'mcpb') && has(field('registryBaseUrl'))) {
    pack.problem(field('registryBaseUrl'), `is not used for ${type}: the identifier is the whole address`)
  }
}

function notEmpty(text: string): string | undefined {
  return text === '' ? 'must not be empty' : undefined
}

function identifierProblem(text: string): string | undefined {
  return notEmpty(text) ?? (/\s/.test(text) ? 'must not contain spaces' : undefined)
}

function sha256Problem(text: string): string | undefined {
  return /^[a-f0-9]{64}$/.test(text) ? undefined : 'must be 64 lower-case hexadecimal digits'
}
