/** Thrown by a `create<Name>` function whose options cannot work. The message names the option, not the document it came from. */
export class InvalidOptions extends Error {
  override readonly name = 'InvalidOptions'
}
