/** Why a volume cannot be made ready now. The message is for the event `FailedMount`; it may be worth another try. */
export class MountError extends Error {
  readonly volume: string

  constructor(volume: string, message: string) {
    super(message)
    this.name = 'MountError'
    this.volume = volume
  }
}
