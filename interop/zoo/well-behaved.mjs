// The legacy server with nothing changed.
import { answer, legacy, serve } from './server.mjs';

serve(message => answer(legacy(message)));
