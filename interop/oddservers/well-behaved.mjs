// The legacy server without a change.
import { answer, legacy, serve } from './server.mjs';

serve(message => answer(legacy(message)));
