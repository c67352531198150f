/** A patch that cannot be carried out. `status` is that of the real server's answer, the message its words. */
export class PatchError extends Error {
  readonly status: 400 | 413 | 422 | 500

  constructor(status: 400 | 413 | 422 | 500, message: string) {
    super(message)
    this.name = 'PatchError'
    this.status = status
  }
}
