import type { Environment } from '@marcbachmann/cel-js'

/** A rule failed while it ran. The text is what the client sees. */
export class RuleError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'RuleError'
  }
}

/**
 * Functions that Kubernetes adds to CEL, or whose cel-js version differs from cel-go's. They are registered under a
 * name of their own, because cel-js does not allow replacing a function; `libraryName` maps calls in rules to it.
 */
export interface Library {
  readonly types?: Readonly<Record<string, { new (...args: never[]): object }>>
  /** By name: type and value. */
  readonly constants?: Readonly<Record<string, readonly [string, object]>>
  // biome-ignore lint/suspicious/noExplicitAny: the signature text declares the types, cel-js checks them at run time
  readonly functions: Readonly<Record<string, (...args: any[]) => unknown>>
}

const PREFIX = 'k8s_'

export function install(environment: Environment, libraries: readonly Library[]): ReadonlySet<string> {
  const names = new Set<string>()
  for (const { types, constants, functions } of libraries) {
    for (const [name, ctor] of Object.entries(types ?? {})) environment.registerType(name, { ctor, fields: {} })
    for (const [name, [type, value]] of Object.entries(constants ?? {})) environment.registerConstant(name, type, value)
    for (const [signature, handler] of Object.entries(functions)) {
      const [, receiver = '', name = '', rest = ''] = /^((?:[\w.<>, ]+\.)?)(\w+)(\(.*)$/.exec(signature) ?? []
      names.add(name)
      environment.registerFunction(`${receiver}${PREFIX}${name}${rest}`, handler, { async: false })
    }
  }
  return names
}

export function libraryName(name: string): string {
  return `${PREFIX}${name}`
}
