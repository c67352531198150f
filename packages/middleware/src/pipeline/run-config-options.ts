import { runConfigError } from '@thv/runconfig/run-config-errors'
import { InvalidOptions } from './invalid-options.ts'

export type Env = Readonly<Record<string, string | undefined>>

/** Names the field in the error. */
export function fromField<T>(field: string, make: () => T): T {
  try {
    return make()
  } catch (error) {
    throw error instanceof InvalidOptions ? runConfigError('run_config_invalid', `${field}: ${error.message}`) : error
  }
}

/** A missing secret is fatal: the server would be called without something it needs. */
export function secretVariable(variable: string, field: string, env: Env): string {
  const value = optionalSecretVariable(variable, env)
  if (value === undefined) throw runConfigError('run_config_invalid', `${field}: the variable ${variable} is not set`)
  return value
}

/** Secrets made from files often end with a line break. */
export function optionalSecretVariable(variable: string, env: Env): string | undefined {
  const value = env[variable]?.replace(/\r?\n$/, '')
  return value === '' ? undefined : value
}

/** The variable that holds the secret of a name. */
export function secretVariableName(name: string): string {
  return `TOOLHIVE_SECRET_${name}`
}
