/** Why a container cannot be given what its spec asks for: the reason `CreateContainerConfigError` with this message. */
export class ConfigError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'ConfigError'
  }
}
